// SPDX-License-Identifier: Apache-2.0
#include "ann/disk_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "terrace/error.hpp"
#include "tiers/block_file.hpp"
#include "tiers/mapping.hpp"
#include "tiers/pool_queue.hpp"
#include "tiers/uring_queue.hpp"

namespace terrace::ann {
namespace {

constexpr unsigned kDepth = 128;
constexpr Bytes kBlock{4096};

/// Some file systems take O_DIRECT when opening and refuse it when reading.
bool reads_directly(int descriptor) {
  const Mapping page = map_anonymous(kBlock, "a page");
  return pread(descriptor, page.data(), kBlock.count, 0) >= 0;
}

}  // namespace

DiskFile::DiskFile(const std::filesystem::path& path, Bytes unit) : path_(path.native()), unit_(unit) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (descriptor_ >= 0 && !reads_directly(descriptor_)) {
    close(descriptor_);
    descriptor_ = -1;
  }
  if (descriptor_ < 0) {
    direct_ = false;
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  struct stat status {};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    const int cause = errno;
    if (descriptor_ >= 0) close(descriptor_);
    throw EnvironmentError(fmt::format("cannot read {} ({}): check the disk", path_, std::strerror(cause)),
                           {"", path_, 0, cause});
  }
  size_ = Bytes{static_cast<std::uint64_t>(status.st_size)};
}

DiskFile::~DiskFile() { close(descriptor_); }

std::unique_ptr<BlockQueue> DiskFile::open_queue() const {
  const BlockFile file{descriptor_, size_, kBlock, kBlock, unit_, kDepth, Durability::device, path_, path_};
  auto queue = open_uring_queue(file);
  if (queue) return *std::move(queue);
  constexpr unsigned kThreads = 16;
  return open_pool_queue(file, kThreads);
}

}  // namespace terrace::ann
