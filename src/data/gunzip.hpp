// Gunzip decompresses a gzip file piece by piece. It borrows the file and is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "terrace/bytes.hpp"

namespace terrace {

class Gunzip {
 public:
  enum class Ending {
    none,       ///< there is more to read
    clean,      ///< everything was read and its checksum agrees
    truncated,  ///< the file stops in the middle
    corrupt,    ///< not gzip, damaged, or its checksum disagrees
    garbage,    ///< there are bytes after the end of the compressed data
  };

  /// Larger files are refused.
  static constexpr Bytes kLargestFile{std::uint64_t{1} << 30};

  /// pre: file.size() <= kLargestFile
  explicit Gunzip(std::span<const std::byte> file);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Fills `out`, or as much of it as the rest of the file gives, and returns the number of bytes.
  std::size_t read(std::span<std::uint8_t> out);
  /// Says how the data ended, once read() returned less than was requested.
  Ending ending() const noexcept { return ending_; }

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  Ending ending_ = Ending::none;
};

}  // namespace terrace
