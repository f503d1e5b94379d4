#include "base/system_storage.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/scratch_file.hpp"

namespace terrace {
namespace {

using namespace literals;

// The block is larger than any disk's sector, so a refusal means that direct I/O itself is not supported.
constexpr Bytes kProbeBlock = 64_KiB;

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

int try_direct(ScratchFile& file) {
  if (const int refused = file.go_direct()) return refused;
  const std::unique_ptr<void, FreeMemory> block(std::aligned_alloc(kProbeBlock.count, kProbeBlock.count));
  if (!block) return ENOMEM;
  std::memset(block.get(), 0, kProbeBlock.count);
  const auto whole = static_cast<ssize_t>(kProbeBlock.count);
  const ssize_t wrote = pwrite(file.descriptor(), block.get(), kProbeBlock.count, 0);
  if (wrote != whole) return wrote < 0 ? errno : EIO;
  const ssize_t read = pread(file.descriptor(), block.get(), kProbeBlock.count, 0);
  if (read != whole) return read < 0 ? errno : EIO;
  return 0;
}

bool try_map_sync(const ScratchFile& file) {
  if (ftruncate(file.descriptor(), static_cast<off_t>(kProbeBlock.count)) != 0) return false;
  void* memory = mmap(nullptr, kProbeBlock.count, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC,
                      file.descriptor(), 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, kProbeBlock.count);
  return true;
}

}  // namespace

Result<StorageFeatures> probe_storage(const std::filesystem::path& folder) {
  auto file = ScratchFile::create(folder);
  if (!file) return file.error();
  StorageFeatures features;
  struct statfs system {};
  if (fstatfs(file->descriptor(), &system) == 0) {
    features.free_space = Bytes{system.f_bavail * static_cast<std::uint64_t>(system.f_bsize)};
    features.in_memory = system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
  }
  features.map_sync = try_map_sync(*file);
  features.direct_error = try_direct(*file);
  return features;
}

}  // namespace terrace
