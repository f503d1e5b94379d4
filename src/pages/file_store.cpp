// SPDX-License-Identifier: Apache-2.0
#include "pages/file_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>

#include "base/scratch_file.hpp"
#include "pages/out_of_the_way.hpp"
#include "pages/slots.hpp"
#include "tiers/direct_io.hpp"

namespace terrace::pages {

std::uint32_t slots_in(Bytes capacity) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << kSlotIndexBits) - 1;
  return static_cast<std::uint32_t>(std::min(capacity.count / kPart, kMost));
}

std::size_t total(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

namespace {

/// A file without a name. The disk's space is reserved in steps, because writing into space that is not
/// reserved takes twice as long, and a program's footprint is not known before it runs.
class FileStore final : public Store {
 public:
  /// Takes the descriptor over.
  FileStore(FileStoreSpec spec, int descriptor)
      : spec_(std::move(spec)), slots_(slots_in(spec_.capacity)), descriptor_(descriptor) {}
  FileStore(const FileStore&) = delete;
  ~FileStore() override { close(descriptor_); }

  const std::string& name() const noexcept override { return spec_.name; }
  const std::string& path() const noexcept override { return spec_.path; }
  std::uint32_t slots() const noexcept override { return slots_; }

  int read(std::uint64_t offset, std::byte* to, std::size_t bytes) noexcept override {
    while (bytes > 0) {
      const ssize_t done = pread(descriptor_, to, bytes, static_cast<off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return done < 0 ? errno : EIO;
      const auto count = static_cast<std::size_t>(done);
      offset += count;
      to += count;
      bytes -= count;
    }
    return 0;
  }

  int write(std::uint64_t offset, std::span<const iovec> from) noexcept override {
    reserve(offset + total(from));
    std::size_t done_before = 0;  // of the first piece that is left
    while (!from.empty()) {
      ssize_t done = 0;
      if (done_before == 0) {
        done = pwritev(descriptor_, from.data(), static_cast<int>(from.size()), static_cast<off_t>(offset));
      } else {
        const auto* data = static_cast<const std::byte*>(from.front().iov_base) + done_before;
        done = pwrite(descriptor_, data, from.front().iov_len - done_before, static_cast<off_t>(offset));
      }
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return done < 0 ? errno : ENOSPC;
      offset += static_cast<std::uint64_t>(done);
      done_before += static_cast<std::size_t>(done);
      while (!from.empty() && done_before >= from.front().iov_len) {
        done_before -= from.front().iov_len;
        from = from.subspan(1);
      }
    }
    return 0;
  }

  int descriptor() const noexcept override { return descriptor_; }
  std::unique_ptr<Store> for_a_child() const override {
    auto opened = open_file_store(spec_);
    return opened ? *std::move(opened) : nullptr;
  }

 private:
  /// Fails silently: the write then tells whether there is space.
  void reserve(std::uint64_t end) noexcept {
    constexpr std::uint64_t kStep = std::uint64_t{256} << 20;
    std::uint64_t reserved = reserved_.load();
    while (end > reserved) {
      if (!reserved_.compare_exchange_strong(reserved, reserved + kStep)) continue;
      if (fallocate(descriptor_, 0, static_cast<off_t>(reserved), static_cast<off_t>(kStep)) != 0) return;
      reserved += kStep;
    }
  }

  FileStoreSpec spec_;
  std::uint32_t slots_;
  int descriptor_;
  std::atomic<std::uint64_t> reserved_{0};
};

}  // namespace

Result<std::unique_ptr<Store>> open_file_store(const FileStoreSpec& spec) {
  std::error_code failed;
  // A folder is named as it is, a file by the folder it would lie in: either way it never gets a name.
  const std::filesystem::path path = spec.path;
  const auto folder = std::filesystem::is_directory(path, failed) ? path : path.parent_path();
  auto file = ScratchFile::create(folder.empty() ? "." : folder);
  if (!file) return file.error();
  if (ftruncate(file->descriptor(), kPart) != 0)
    return Error{ErrorCode::tier_full, fmt::format("{} has no room for a single part", folder.native())};
  const auto direct = enable_direct_io(file->descriptor(), spec.name, spec.path);
  if (!direct && !spec.buffered)
    return Error{
        ErrorCode::unsupported,
        fmt::format("the file system of {} refuses direct I/O: name a folder on another disk, or add "
                    "`,buffered` to accept the page cache",
                    folder.native())};
  if (direct && direct->block.count > kPage)
    return Error{ErrorCode::unsupported, fmt::format("the disk of {} takes no requests of 4 KiB: name a "
                                                     "folder on another disk",
                                                     folder.native())};
  const int kept = out_of_the_way(fcntl(file->descriptor(), F_DUPFD_CLOEXEC, 0));
  if (kept < 0) return Error{ErrorCode::unsupported, "no more files can be opened: raise `ulimit -n`"};
  return std::unique_ptr<Store>(std::make_unique<FileStore>(spec, kept));
}

}  // namespace terrace::pages
