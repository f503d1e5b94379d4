#include "tiers/pool_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

std::int64_t transfer_once(const BlockFile& file, const BlockRequest& request) {
  const auto iovecs = as_iovecs(request.pieces);
  const auto transfer = request.access == Access::read ? preadv2 : pwritev2;
  const auto done = transfer(file.descriptor, iovecs.data(), static_cast<int>(iovecs.size()),
                             static_cast<off_t>(request.offset), request_flags(file, request.access));
  return done >= 0 ? done : -errno;
}

std::int64_t transfer(const BlockFile& file, const BlockRequest& request) {
  std::int64_t result = transfer_once(file, request);
  for (unsigned i = 0; i < kMostInterruptions && is_interruption(result); ++i) {
    result = transfer_once(file, request);
  }
  return result;
}

class PoolQueue final : public BlockQueue {
 public:
  PoolQueue(BlockFile file, unsigned threads) : file_(std::move(file)) {
    done_.reserve(file_.depth);
    start(std::min(threads, file_.depth));
  }

  ~PoolQueue() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_or_stop_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Bytes block_size() const noexcept override { return file_.block_size; }
  Bytes memory_alignment() const noexcept override { return file_.memory_alignment; }
  Bytes request_size() const noexcept override { return file_.request_size; }
  unsigned depth() const noexcept override { return file_.depth; }

  bool register_memory(std::span<std::byte>) override { return false; }

  void submit(const BlockRequest& request) override {
    check_request(file_, request);
    {
      const std::lock_guard lock(mutex_);
      check(in_flight_ < file_.depth, "at most depth() requests may be in flight");
      requests_.push_back(request);
      ++in_flight_;
    }
    work_or_stop_.notify_one();
  }

  std::size_t wait(std::span<BlockCompletion> completions) override {
    check(!completions.empty(), "wait() needs room for a completion");
    std::unique_lock lock(mutex_);
    done_or_woken_.wait(lock, [&] { return woken_ || !done_.empty(); });
    woken_ = false;
    const std::size_t count = std::min(completions.size(), done_.size());
    const auto end = done_.begin() + static_cast<std::ptrdiff_t>(count);
    std::copy(done_.begin(), end, completions.begin());
    done_.erase(done_.begin(), end);
    in_flight_ -= static_cast<unsigned>(count);
    return count;
  }

  void wake() override {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    done_or_woken_.notify_one();
  }

 private:
  void start(unsigned threads) {
    threads_.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) {
      try {
        threads_.emplace_back([this] { serve(); });
      } catch (const std::exception& error) {
        if (threads_.empty()) throw no_threads(error);
        return;
      }
    }
  }

  EnvironmentError no_threads(const std::exception& error) const {
    return {
        fmt::format("tier {}: the system starts no thread for reading and writing {} ({}): raise the limit "
                    "on processes (ulimit -u) or give the program more memory",
                    file_.tier, file_.path, error.what()),
        {file_.tier, file_.path, 0, EAGAIN}};
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      work_or_stop_.wait(lock, [&] { return stopping_ || !requests_.empty(); });
      if (requests_.empty()) return;
      const BlockRequest request = requests_.front();
      requests_.pop_front();
      lock.unlock();
      const std::int64_t result = transfer(file_, request);
      lock.lock();
      done_.push_back({request.tag, result});
      done_or_woken_.notify_one();
    }
  }

  const BlockFile file_;
  std::mutex mutex_;
  std::condition_variable work_or_stop_;
  std::condition_variable done_or_woken_;
  // mutex_ guards these members.
  std::deque<BlockRequest> requests_;
  std::vector<BlockCompletion> done_;  // never exceeds its first capacity, so that serve() cannot throw
  unsigned in_flight_ = 0;             // submitted and not yet returned by wait()
  bool woken_ = false;
  bool stopping_ = false;
  // The threads are declared last, because they use everything above.
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<BlockQueue> open_pool_queue(const BlockFile& file, unsigned threads) {
  check(threads > 0 && file.depth > 0, "a pool queue needs a thread and a depth");
  return std::make_unique<PoolQueue>(file, threads);
}

}  // namespace terrace
