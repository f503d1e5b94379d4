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

class FileTier final : public Tier {
 public:
  FileTier(TierDescription description, BackingFile file, std::unique_ptr<BlockQueue> queue)
      : description_(std::move(description)), file_(std::move(file)), queue_(std::move(queue)) {}

  const TierDescription& description() const noexcept override { return description_; }
  BlockQueue* blocks() noexcept override { return queue_.get(); }

 private:
  TierDescription description_;
  BackingFile file_;
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
    auto queue = open_queue(block_file);
    const PaceLimits limits{spec_.read_rate, spec_.write_rate};
    if (limits.any()) queue = pace(std::move(queue), limits);
    return std::unique_ptr<Tier>(
        std::make_unique<FileTier>(describe(block_file), std::move(file), std::move(queue)));
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

  std::unique_ptr<BlockQueue> open_queue(const BlockFile& file) {
    if (!spec_.force_pool) {
      auto queue = open_uring_queue(file);
      if (queue) return std::move(*queue);
      tell(queue.error().message + "; threads read and write instead");
    }
    write_threads_ = spec_.threads > 0 ? spec_.threads : kDefaultPoolThreads;
    return open_pool_queue(file, write_threads_);
  }

  TierDescription describe(const BlockFile& file) const {
    TierDescription description;
    description.spec = spec_;
    description.name = name_;
    description.capacity = file.capacity;
    description.granularity = file.block_size;
    description.addressable = false;
    description.write_threads = spec_.threads > 0 ? spec_.threads : write_threads_;
    description.note = note_;
    return description;
  }

  void tell(const std::string& sentence) {
    if (!note_.empty()) note_ += "; ";
    note_ += sentence;
  }

  const TierSpec& spec_;
  const std::string name_;
  unsigned write_threads_ = 1;  // one thread keeps the disk busy with io_uring
  std::string note_;
};

}  // namespace

Result<std::unique_ptr<Tier>> open_file_tier(const TierSpec& spec) {
  check(spec.kind == TierKind::file, "open_file_tier opens file tiers");
  return Opener(spec).open();
}

}  // namespace terrace
