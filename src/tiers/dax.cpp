#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "terrace/error.hpp"
#include "tiers/backing_file.hpp"
#include "tiers/kinds.hpp"
#include "tiers/memory_tier.hpp"

namespace terrace {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void give_up(const TierDescription& tier, const char* doing, int cause) {
  throw EnvironmentError(fmt::format("{} {} for {} failed ({}): check the device and the system's limits",
                                     doing, tier.spec.path, tier.name, std::strerror(cause)),
                         {tier.name, tier.spec.path, 0, cause});
}

void* map_shared(int fd, std::size_t bytes, int flags) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}

// ---- A file

Mapping map_file(int fd, TierDescription& description) {
  const std::size_t bytes = round_up(description.capacity, page_size()).count;
  void* start = map_shared(fd, bytes, MAP_SHARED_VALIDATE | MAP_SYNC);
  if (start != MAP_FAILED) {
    Mapping mapping(start, bytes);
    populate(mapping, description.name);
    return mapping;
  }
  // The memory is not pre-touched, because through the page cache that would only write a file of zeros.
  start = map_shared(fd, bytes, MAP_SHARED);
  if (start == MAP_FAILED) give_up(description, "mapping", errno);
  description.note = "mapped without MAP_SYNC, through the page cache: the file system does not offer DAX";
  return {start, bytes};
}

Result<Mapping> open_file(TierDescription& description) {
  const TierSpec& spec = description.spec;
  const auto file = open_backing_file(spec.path, description.capacity, spec.keep, 0, description.name);
  if (!file) return file.error();
  return map_file(file->fd(), description);
}

// ---- A device

struct Device {
  fs::path folder;  ///< the device's folder in /sys

  std::uint64_t attribute(const char* name) const {
    std::ifstream file(folder / name);
    std::uint64_t value = 0;
    file >> value;
    return value;
  }
};

std::optional<Device> find_device(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) return std::nullopt;
  const Device device{fmt::format("/sys/dev/char/{}:{}", major(status.st_rdev), minor(status.st_rdev))};
  std::error_code missing;
  const fs::path subsystem = fs::read_symlink(device.folder / "subsystem", missing);
  return !missing && subsystem.filename() == "dax" ? std::optional{device} : std::nullopt;
}

Result<Mapping> open_device(TierDescription& description, const Device& device) {
  const std::string& path = description.spec.path;
  const Bytes size{device.attribute("size")}, unit = std::max(kHugePage, Bytes{device.attribute("align")});
  const Bytes wanted = round_up(description.capacity, unit);
  if (wanted > size) {
    return Error{ErrorCode::too_large, fmt::format("{} needs {} but {} has {}: ask for less",
                                                   description.name, readable(wanted), path, readable(size))};
  }
  const BackingFile file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file.fd() < 0) {
    if (errno != EACCES && errno != EPERM && errno != EBUSY) give_up(description, "opening", errno);
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} cannot be opened ({}): change the device's permissions or name another",
                             description.name, std::strerror(errno))};
  }
  void* const start = map_shared(file.fd(), wanted.count, MAP_SHARED);
  if (start == MAP_FAILED) give_up(description, "mapping", errno);
  Mapping mapping(start, wanted.count);
  populate(mapping, description.name);
  return mapping;
}

}  // namespace

Result<std::unique_ptr<Tier>> open_dax_tier(const TierSpec& spec) {
  auto description = describe(spec, kCacheLine);
  if (!description) return description.error();
  if (spec.threads == 0) description->write_threads = slow_memory_copy_threads();
  const auto device = find_device(spec.path);
  auto mapping = device ? open_device(*description, *device) : open_file(*description);
  if (!mapping) return mapping.error();
  return std::unique_ptr<Tier>(std::make_unique<MemoryTier>(std::move(*description), std::move(*mapping)));
}

}  // namespace terrace
