// SPDX-License-Identifier: Apache-2.0
#include "pages/read_ring.hpp"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "pages/out_of_the_way.hpp"

namespace terrace::pages {
namespace {

std::uint32_t load(const std::uint32_t* from) {
  return std::atomic_ref(*const_cast<std::uint32_t*>(from)).load(std::memory_order_acquire);
}
void store(std::uint32_t* to, std::uint32_t value) {
  std::atomic_ref(*to).store(value, std::memory_order_release);
}

std::byte* map(int descriptor, std::size_t bytes, off_t offset) {
  const long start = syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                             descriptor, offset);
  return start == -1 ? nullptr : reinterpret_cast<std::byte*>(start);
}

}  // namespace

std::unique_ptr<ReadRing> ReadRing::open() {
  std::unique_ptr<ReadRing> ring(new ReadRing);
  return ring->prepare() ? std::move(ring) : nullptr;
}

bool ReadRing::prepare() {
  io_uring_params wish{};
  // Whoever listens enters the kernel all the time: it need not be interrupted to be told.
  wish.flags = IORING_SETUP_COOP_TASKRUN;
  long made = syscall(SYS_io_uring_setup, kDepth, &wish);
  if (made < 0 && errno == EINVAL) {
    wish = {};
    made = syscall(SYS_io_uring_setup, kDepth, &wish);
  }
  if (made < 0) return false;
  descriptor_ = out_of_the_way(static_cast<int>(made));
  // Kernels before 5.4 map both rings apart.
  if ((wish.features & IORING_FEAT_SINGLE_MMAP) == 0) return false;
  rings_bytes_ = std::max<std::size_t>(wish.sq_off.array + wish.sq_entries * sizeof(std::uint32_t),
                                       wish.cq_off.cqes + wish.cq_entries * sizeof(io_uring_cqe));
  entries_bytes_ = wish.sq_entries * sizeof(io_uring_sqe);
  rings_ = map(descriptor_, rings_bytes_, IORING_OFF_SQ_RING);
  entries_ = map(descriptor_, entries_bytes_, IORING_OFF_SQES);
  if (rings_ == nullptr || entries_ == nullptr) return false;
  const auto at = [&](std::uint32_t offset) { return reinterpret_cast<std::uint32_t*>(rings_ + offset); };
  head_ = at(wish.sq_off.head);
  tail_ = at(wish.sq_off.tail);
  mask_ = *at(wish.sq_off.ring_mask);
  numbers_ = at(wish.sq_off.array);
  done_head_ = at(wish.cq_off.head);
  done_tail_ = at(wish.cq_off.tail);
  done_mask_ = *at(wish.cq_off.ring_mask);
  done_ = rings_ + wish.cq_off.cqes;
  return true;
}

ReadRing::~ReadRing() {
  if (rings_ != nullptr) munmap(rings_, rings_bytes_);
  if (entries_ != nullptr) munmap(entries_, entries_bytes_);
  if (descriptor_ >= 0) syscall(SYS_close, descriptor_);
}

void ReadRing::add(int file, std::uint64_t offset, std::byte* to, std::size_t bytes, std::uint64_t tag) {
  const std::uint32_t tail = *tail_, number = tail & mask_;
  io_uring_sqe entry{};
  entry.opcode = IORING_OP_READ;
  entry.fd = file;
  entry.off = offset;
  entry.addr = reinterpret_cast<std::uint64_t>(to);
  entry.len = static_cast<std::uint32_t>(bytes);
  entry.user_data = tag;
  std::memcpy(entries_ + number * sizeof entry, &entry, sizeof entry);
  numbers_[number] = number;
  store(tail_, tail + 1);
  ++unstarted_;
}

bool ReadRing::start() {
  while (unstarted_ > 0) {
    const long started = syscall(SYS_io_uring_enter, descriptor_, unstarted_, 0, 0, nullptr, 0);
    if (started < 0 && errno == EINTR) continue;
    if (started <= 0) return false;
    unstarted_ -= static_cast<unsigned>(started);
  }
  return true;
}

bool ReadRing::has_news() const { return load(done_tail_) != load(done_head_); }

ReadRing::Done ReadRing::take() {
  const std::uint32_t head = *done_head_;
  io_uring_cqe entry;
  std::memcpy(&entry, done_ + (head & done_mask_) * sizeof entry, sizeof entry);
  store(done_head_, head + 1);
  return {entry.user_data, entry.res};
}

}  // namespace terrace::pages
