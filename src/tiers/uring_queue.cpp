// SPDX-License-Identifier: Apache-2.0
#include "tiers/uring_queue.hpp"

#ifndef TERRACE_HAS_URING

namespace terrace {

Result<std::unique_ptr<BlockQueue>> open_uring_queue(const BlockFile&) {
  return Error{ErrorCode::unsupported, "this build has no io_uring: install liburing-dev and build again"};
}

}  // namespace terrace

#else

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "terrace/error.hpp"
#include "tiers/uring_buffers.hpp"

namespace terrace {
namespace {

constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};

class UringQueue final : public BlockQueue {
 public:
  /// Takes ownership of an initialised ring and an eventfd.
  UringQueue(BlockFile file, const io_uring& ring, int wake_descriptor)
      : file_(std::move(file)), ring_(ring), wake_descriptor_(wake_descriptor), buffers_(ring_) {
    file_is_registered_ = io_uring_register_files(&ring_, &file_.descriptor, 1) == 0;
    slots_.resize(file_.depth);
    for (unsigned slot = file_.depth; slot > 0; --slot) free_slots_.push_back(slot - 1);
    arm_wake();
  }

  // The destructor waits, because the kernel would otherwise go on writing into the caller's memory. Then it
  // unregisters file and memory itself, because closing a ring does so only some time later.
  ~UringQueue() override {
    try {
      std::array<BlockCompletion, 16> dropped;
      while (in_flight() > 0) {
        if (reap(dropped) == 0) enter(1);
      }
    } catch (const EnvironmentError&) {
      // The ring itself is broken; closing it below cancels the remaining requests.
    }
    if (file_is_registered_) io_uring_unregister_files(&ring_);
    io_uring_unregister_buffers(&ring_);
    io_uring_queue_exit(&ring_);
    close(wake_descriptor_);
  }

  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  Bytes block_size() const noexcept override { return file_.block_size; }
  Bytes memory_alignment() const noexcept override { return file_.memory_alignment; }
  Bytes request_size() const noexcept override { return file_.request_size; }
  unsigned depth() const noexcept override { return file_.depth; }

  bool register_memory(std::span<std::byte> memory) override {
    const std::lock_guard lock(buffers_mutex_);
    return buffers_.add(memory);
  }

  void forget_memory(std::span<std::byte> memory) override {
    const std::lock_guard lock(buffers_mutex_);
    buffers_.remove(memory);
  }

  void submit(const BlockRequest& request) override { submit_all(std::span(&request, 1)); }

  // One call into the kernel for all of them: the disk, too, is told once.
  void submit_all(std::span<const BlockRequest> requests) override {
    const std::lock_guard lock(buffers_mutex_);
    for (const BlockRequest& request : requests) {
      check_request(file_, request);
      check(!free_slots_.empty(), "at most depth() requests may be in flight");
      const unsigned slot = free_slots_.back();
      free_slots_.pop_back();
      slots_[slot] = {request, 0};
      enqueue(slot);
    }
    // enter() submits again what the kernel does not accept now for lack of memory.
    io_uring_submit(&ring_);
  }

  std::size_t wait(std::span<BlockCompletion> completions) override { return wait_for(completions, 1); }

  std::size_t wait_for(std::span<BlockCompletion> completions, std::size_t least) override {
    check(least >= 1 && least <= completions.size(), "wait() needs room for what it waits for");
    std::size_t count = reap(completions);
    while (count < least && !woken_) {
      enter(static_cast<unsigned>(least - count));
      count += reap(completions.subspan(count));
    }
    woken_ = false;
    return count;
  }

  void wake() override {
    const std::uint64_t one = 1;
    while (write(wake_descriptor_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

 private:
  struct Slot {
    BlockRequest request;
    unsigned interruptions = 0;
  };

  unsigned in_flight() const { return file_.depth - static_cast<unsigned>(free_slots_.size()); }

  // The caller holds the lock, which keeps a buffer's table entry from being given to other memory before the
  // kernel has seen it.
  void enqueue(unsigned slot) {
    io_uring_sqe* entry = next_entry();
    prepare(entry, slots_[slot].request);
    entry->rw_flags = request_flags(file_, slots_[slot].request.access);
    if (file_is_registered_) entry->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data64(entry, slot);
  }

  void prepare(io_uring_sqe* entry, const BlockRequest& request) {
    const int file = file_is_registered_ ? 0 : file_.descriptor;
    const bool reads = request.access == Access::read;
    const Piece& first = request.pieces.front();
    const auto fixed = request.pieces.size() == 1 ? buffers_.find(first) : std::nullopt;
    if (fixed) {
      const auto prepare_fixed = reads ? prepare_read_fixed : prepare_write_fixed;
      prepare_fixed(entry, file, first, request.offset, *fixed);
    } else {
      const auto iovecs = as_iovecs(request.pieces);
      const auto prepare_vector = reads ? io_uring_prep_readv : io_uring_prep_writev;
      prepare_vector(entry, file, iovecs.data(), static_cast<unsigned>(iovecs.size()), request.offset);
    }
  }

  static void prepare_read_fixed(io_uring_sqe* entry, int file, const Piece& piece, std::uint64_t offset,
                                 unsigned buffer) {
    io_uring_prep_read_fixed(entry, file, piece.memory, static_cast<unsigned>(piece.bytes), offset,
                             static_cast<int>(buffer));
  }

  static void prepare_write_fixed(io_uring_sqe* entry, int file, const Piece& piece, std::uint64_t offset,
                                  unsigned buffer) {
    io_uring_prep_write_fixed(entry, file, piece.memory, static_cast<unsigned>(piece.bytes), offset,
                              static_cast<int>(buffer));
  }

  // A read of the eventfd stays in the ring, so that one wait serves completions and wakes.
  void arm_wake() {
    io_uring_sqe* entry = next_entry();
    io_uring_prep_read(entry, wake_descriptor_, &wake_count_, sizeof wake_count_, 0);
    io_uring_sqe_set_data64(entry, kWakeTag);
  }

  // The ring has room for every slot and for the read of the eventfd.
  io_uring_sqe* next_entry() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    check(entry != nullptr, "the submission ring overflowed");
    return entry;
  }

  void enter(unsigned least) {
    const int result = io_uring_submit_and_wait(&ring_, least);
    if (result >= 0 || result == -EINTR) return;
    if (result != -EAGAIN && result != -EBUSY) throw broken_ring(-result);
    std::this_thread::yield();  // the kernel is short of memory, or its completions must be taken first
  }

  EnvironmentError broken_ring(int cause) const {
    return {
        fmt::format("tier {}: io_uring stopped working while {} requests to {} were in flight: {}. Try the "
                    "option `pool`",
                    file_.tier, in_flight(), file_.path, std::strerror(cause)),
        {file_.tier, file_.path, 0, cause}};
  }

  std::size_t reap(std::span<BlockCompletion> completions) {
    std::size_t count = 0;
    io_uring_cqe* cqe = nullptr;
    while (count < completions.size() && io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const std::uint64_t tag = io_uring_cqe_get_data64(cqe);
      const int result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      if (tag == kWakeTag) {
        woken_ |= result > 0;  // the read may also end because the thread that submitted it has ended
        arm_wake();
      } else if (!asked_again(static_cast<unsigned>(tag), result)) {
        completions[count++] = {slots_[tag].request.tag, result};
        free_slots_.push_back(static_cast<unsigned>(tag));
      }
    }
    return count;
  }

  bool asked_again(unsigned slot, int result) {
    if (!is_interruption(result) || slots_[slot].interruptions == kMostInterruptions) return false;
    ++slots_[slot].interruptions;
    const std::lock_guard lock(buffers_mutex_);
    enqueue(slot);
    io_uring_submit(&ring_);
    return true;
  }

  const BlockFile file_;
  io_uring ring_;
  const int wake_descriptor_;
  std::uint64_t wake_count_ = 0;  // written by the kernel
  bool woken_ = false;
  bool file_is_registered_ = false;
  std::vector<Slot> slots_;  // a request's index here is its tag in the ring
  std::vector<unsigned> free_slots_;
  std::mutex buffers_mutex_;
  UringBuffers buffers_;  // guarded by buffers_mutex_
};

// Completions need not interrupt the submitting thread, because it takes them when it enters the kernel.
// Stricter modes (one issuer, deferred work) would forbid passing the queue to another thread, and measured
// no faster at these request sizes.
int open_ring(unsigned entries, io_uring& ring) {
  io_uring_params params{};
  params.flags = IORING_SETUP_COOP_TASKRUN;
  int result = io_uring_queue_init_params(entries, &ring, &params);
  if (result == -EINVAL) {
    params = {};
    result = io_uring_queue_init_params(entries, &ring, &params);
  }
  // Before this feature (5.7), waiting for the eventfd would occupy a kernel thread.
  if (result == 0 && (params.features & IORING_FEAT_FAST_POLL) == 0) {
    io_uring_queue_exit(&ring);
    return -ENOSYS;
  }
  return result;
}

Error refused(int cause) {
  return {ErrorCode::unsupported, fmt::format("the kernel refuses io_uring: {}", std::strerror(cause))};
}

}  // namespace

Result<std::unique_ptr<BlockQueue>> open_uring_queue(const BlockFile& file) {
  check(file.depth > 0, "a queue needs a depth");
  io_uring ring;
  const int result = open_ring(file.depth + 1, ring);
  if (result < 0) return refused(-result);
  const int wake_descriptor = eventfd(0, EFD_CLOEXEC);
  if (wake_descriptor < 0) {
    const int cause = errno;
    io_uring_queue_exit(&ring);
    return refused(cause);
  }
  return std::unique_ptr<BlockQueue>(std::make_unique<UringQueue>(file, ring, wake_descriptor));
}

}  // namespace terrace

#endif
