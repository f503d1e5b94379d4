// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.hpp"
#include "tiers/backing_file.hpp"
#include "tiers/direct_io.hpp"
#include "tiers/kinds.hpp"
#include "tiers/paced_queue.hpp"
#include "tiers/pool_queue.hpp"
#include "tiers/uring_queue.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr Bytes kDefaultRequest = 4_MiB;
constexpr unsigned kDefaultDepth = 32;
constexpr Bytes kLeastCapacity = 4_KiB;

/// Opens queues to one file, all of the same kind and under the same limits.
class QueueOpener {
 public:
  QueueOpener(BlockFile file, const TierSpec& spec) : file_(std::move(file)), pool_(spec.force_pool) {
    if (spec.threads > 0) threads_ = spec.threads;
    const PaceLimits limits{spec.read_rate, spec.write_rate};
    if (limits.any()) pace_ = std::make_shared<SharedPace>(limits);
  }

  std::unique_ptr<BlockQueue> open() {
    auto queue = open_unpaced();
    return pace_ ? pace(std::move(queue), file_, pace_) : std::move(queue);
  }

  const BlockFile& file() const { return file_; }
  bool by_threads() const { return pool_; }
  unsigned threads() const { return threads_; }
  /// Why threads read and write, where that was not asked for.
  const std::string& refusal() const { return refusal_; }

 private:
  std::unique_ptr<BlockQueue> open_unpaced() {
    if (!pool_) {
      auto queue = open_uring_queue(file_);
      if (queue) return std::move(*queue);
      refusal_ = queue.error().message;
    }
    pool_ = true;
    return open_pool_queue(file_, threads_);
  }

  BlockFile file_;
  bool pool_;
  unsigned threads_ = kDefaultPoolThreads;
  std::shared_ptr<SharedPace> pace_;
  std::string refusal_;
};

class FileTier final : public Tier {
 public:
  FileTier(TierDescription description, BackingFile file, std::unique_ptr<BlockQueue> queue, QueueOpener more)
      : description_(std::move(description)),
        file_(std::move(file)),
        more_(std::move(more)),
        queue_(std::move(queue)) {}

  const TierDescription& description() const noexcept override { return description_; }
  BlockQueue* blocks() noexcept override { return queue_.get(); }
  // A copy of the opener, because one that finds no more rings turns to threads.
  std::unique_ptr<BlockQueue> lane() override { return QueueOpener(more_).open(); }

 private:
  TierDescription description_;
  BackingFile file_;
  const QueueOpener more_;
  std::unique_ptr<BlockQueue> queue_;  // declared last, because it uses the file until it is destroyed
};

// Removes the file of a tier that then cannot be opened, even if it was to be kept.
class Undo {
 public:
  explicit Undo(const TierSpec& spec) : path_(spec.path) {
    struct stat ignored;
    armed_ = spec.keep && lstat(path_.c_str(), &ignored) != 0 && errno == ENOENT;
  }
  ~Undo() {
    if (armed_ && created_) unlink(path_.c_str());
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  void created() { created_ = true; }
  void disarm() { armed_ = false; }

 private:
  const std::string& path_;
  bool armed_ = false;
  bool created_ = false;
};

class Opener {
 public:
  explicit Opener(const TierSpec& spec) : spec_(spec), name_(to_string(spec)) {}

  Result<std::unique_ptr<Tier>> open() {
    if (spec_.capacity < kLeastCapacity) return too_small(kLeastCapacity);
    Undo undo(spec_);
    auto file = open_backing_file(spec_.path, spec_.capacity, spec_.keep, 0, name_);
    if (!file) return file.error();
    undo.created();
    auto tier = build(std::move(*file));
    if (tier) undo.disarm();
    return tier;
  }

 private:
  Error refuse(ErrorCode code, const std::string& reason) const {
    return {code, fmt::format("cannot open {}: {}", name_, reason)};
  }

  Result<std::unique_ptr<Tier>> build(BackingFile file) {
    const auto direct = enable_direct_io(file.fd(), name_, spec_.path);
    if (!direct && !spec_.buffered) return direct_refused();
    if (!direct) tell("the file system refuses direct I/O: reads and writes go through the page cache");
    const Alignment alignment = direct.value_or(buffered_alignment());
    if (spec_.capacity < alignment.block) return too_small(alignment.block);
    if (request_size() % alignment.block != Bytes{0}) return block_refused(alignment.block);

    BlockFile block_file{file.fd(),
                         round_down(spec_.capacity, alignment.block),
                         alignment.block,
                         alignment.memory,
                         request_size(),
                         spec_.depth > 0 ? spec_.depth : kDefaultDepth,
                         direct ? Durability::device : Durability::synced,
                         name_,
                         spec_.path};
    QueueOpener opener(std::move(block_file), spec_);
    auto queue = opener.open();
    if (!opener.refusal().empty()) tell(opener.refusal() + "; threads read and write instead");
    return std::unique_ptr<Tier>(
        std::make_unique<FileTier>(describe(opener), std::move(file), std::move(queue), opener));
  }

  Bytes request_size() const { return spec_.block > Bytes{0} ? spec_.block : kDefaultRequest; }

  Error too_small(Bytes least) const {
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("a file tier there has at least {}; ask for more", to_string(least)));
  }

  Error direct_refused() const {
    return refuse(ErrorCode::unsupported,
                  fmt::format("the file system of {} refuses direct I/O; name a file in a folder on another "
                              "disk, or add `,buffered` to accept the page cache",
                              spec_.path));
  }

  Error block_refused(Bytes unit) const {
    return refuse(
        ErrorCode::invalid_argument,
        fmt::format("this disk takes requests in multiples of {}, which block={} is not; try block={}",
                    to_string(unit), to_string(spec_.block), to_string(round_up(spec_.block, unit))));
  }

  TierDescription describe(const QueueOpener& opener) const {
    TierDescription description;
    description.spec = spec_;
    description.name = name_;
    description.capacity = opener.file().capacity;
    description.granularity = opener.file().block_size;
    description.addressable = false;
    // One thread keeps the disk busy with io_uring.
    description.write_threads = spec_.threads > 0 || opener.by_threads() ? opener.threads() : 1;
    description.note = note_;
    return description;
  }

  void tell(const std::string& sentence) {
    if (!note_.empty()) note_ += "; ";
    note_ += sentence;
  }

  const TierSpec& spec_;
  const std::string name_;
  std::string note_;
};

}  // namespace

Result<std::unique_ptr<Tier>> open_file_tier(const TierSpec& spec) {
  check(spec.kind == TierKind::file, "open_file_tier opens file tiers");
  return Opener(spec).open();
}

}  // namespace terrace
