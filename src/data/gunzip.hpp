// Gunzip: takes a gzip'ed file apart, a piece at a time. Borrows the file; one thread at a time.
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
    clean,      ///< all was read and its checksum agrees
    truncated,  ///< the file stops in the middle
    corrupt,    ///< not gzip, damaged, or its checksum disagrees
    garbage,    ///< bytes stand after the end of the compressed data
  };

  /// The most that is read from one file.
  static constexpr Bytes kLargestFile{std::uint64_t{1} << 30};

  /// pre: file.size() <= kLargestFile
  explicit Gunzip(std::span<const std::byte> file);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Fills `out`, or what the rest of the file is enough for, and returns how much that was.
  std::size_t read(std::span<std::uint8_t> out);
  /// Known once read() returned less than was asked for.
  Ending ending() const noexcept { return ending_; }

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  Ending ending_ = Ending::none;
};

}  // namespace terrace
