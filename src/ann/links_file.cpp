// SPDX-License-Identifier: Apache-2.0
#include "ann/links_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ann/graph.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {
namespace {

constexpr std::uint64_t kRowsAtOnce = 4096;

std::span<const std::uint32_t> used(std::span<const std::uint32_t> places) {
  return places.first(
      static_cast<std::size_t>(std::find(places.begin(), places.end(), kNoLink) - places.begin()));
}

/// Marks what can be reached, by reading the file from front to back until nothing is new.
class Reach {
 public:
  Reach(LinksFile& links, std::span<const std::uint32_t> start)
      : links_(links), reached_(links.rows()), followed_(links.rows()) {
    for (const std::uint32_t row : start) reached_[row] = true;
  }
  bool operator[](std::uint32_t row) const { return reached_[row]; }
  void mark(std::uint32_t row) { reached_[row] = true; }

  void spread() {
    for (bool more = true; more;) {
      more = false;
      links_.for_each([&](std::uint32_t row, std::span<const std::uint32_t> links) {
        if (!reached_[row] || followed_[row]) return;
        followed_[row] = true;
        for (const std::uint32_t link : links) {
          if (reached_[link]) continue;
          reached_[link] = true;
          // One that was passed already waits for the next time.
          more = more || link < row;
        }
      });
    }
  }

 private:
  LinksFile& links_;
  std::vector<bool> reached_, followed_;
};

}  // namespace

Result<LinksFile> LinksFile::open(const std::filesystem::path& path, std::uint64_t rows,
                                  std::uint32_t width) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) != rows * width * sizeof(std::uint32_t)) {
    if (descriptor >= 0) close(descriptor);
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} is not what a build left there: remove its folder and build again", path.native())};
  }
  return LinksFile(path, descriptor, rows, width);
}

LinksFile::LinksFile(LinksFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      rows_(other.rows_),
      width_(other.width_) {}

LinksFile::~LinksFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void LinksFile::fail(const char* what, std::uint64_t offset, int cause) const {
  throw EnvironmentError(fmt::format("{} {} failed at byte {} ({}): check the disk", what, path_.native(),
                                     offset, cause != 0 ? std::strerror(cause) : "it ended"),
                         {"", path_.native(), offset, cause});
}

std::vector<std::uint32_t> LinksFile::read(std::uint64_t first, std::uint64_t count) const {
  std::vector<std::uint32_t> places(count * width_);
  auto bytes = std::as_writable_bytes(std::span(places));
  for (std::uint64_t offset = first * width_ * sizeof(std::uint32_t); !bytes.empty();) {
    const ssize_t got = pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("reading", offset, got < 0 ? errno : 0);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return places;
}

void LinksFile::for_each(
    const std::function<void(std::uint32_t, std::span<const std::uint32_t>)>& take) const {
  for (std::uint64_t first = 0; first < rows_; first += kRowsAtOnce) {
    const std::uint64_t count = std::min(kRowsAtOnce, rows_ - first);
    const auto places = read(first, count);
    for (std::uint64_t i = 0; i < count; ++i)
      take(static_cast<std::uint32_t>(first + i), used(std::span(places).subspan(i * width_, width_)));
  }
}

bool LinksFile::add(std::uint32_t from, std::uint32_t to) {
  const auto places = read(from, 1);
  const std::size_t free = used(places).size();
  if (free == width_) return false;
  const std::uint64_t offset = (std::uint64_t{from} * width_ + free) * sizeof to;
  ssize_t written = -1;
  do written = pwrite(descriptor_, &to, sizeof to, static_cast<off_t>(offset));
  while (written < 0 && errno == EINTR);
  if (written != sizeof to) fail("writing", offset, written < 0 ? errno : 0);
  return true;
}

std::vector<std::uint32_t> undirected_degrees(const LinksFile& links, Bytes memory) {
  std::vector<std::uint32_t> degrees(links.rows());
  const Bytes each{links.width() * sizeof(std::uint32_t)};
  const std::uint64_t block =
      std::clamp<std::uint64_t>(memory / each, 1, std::max<std::uint64_t>(links.rows(), 1));
  for (std::uint64_t first = 0; first < links.rows(); first += block) {
    const std::uint64_t count = std::min(block, links.rows() - first);
    const auto places = links.read(first, count);
    links.for_each([&](std::uint32_t row, std::span<const std::uint32_t> all) {
      for (const std::uint32_t other : all) {
        if (other < first || other >= first + count) continue;
        // A link that is answered is counted when the other's turn comes.
        const auto back = used(std::span(places).subspan((other - first) * links.width(), links.width()));
        if (std::find(back.begin(), back.end(), row) == back.end()) ++degrees[other];
      }
      if (row >= first && row < first + count) degrees[row] += static_cast<std::uint32_t>(all.size());
    });
  }
  return degrees;
}

std::uint64_t connect_rows(LinksFile& links, std::span<const std::uint32_t> start,
                           const std::vector<bool>& left_out) {
  Reach reach(links, start);
  reach.spread();
  std::uint64_t added = 0;
  // Rows that are left are few, and near ones lead to one another: after each round fewer are.
  for (bool progress = true; progress;) {
    progress = false;
    for (std::uint32_t row = 0; row < links.rows(); ++row) {
      if (reach[row] || left_out[row]) continue;
      const auto places = links.read(row, 1);
      for (const std::uint32_t link : used(places)) {
        if (!reach[link] || !links.add(link, row)) continue;
        reach.mark(row);
        ++added;
        progress = true;
        break;
      }
    }
    if (progress) reach.spread();
  }
  return added;
}

}  // namespace terrace::ann
