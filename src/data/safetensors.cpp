#include "data/safetensors.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "base/replace_file.hpp"
#include "data/safetensors_header.hpp"
#include "terrace/error.hpp"

namespace terrace::safetensors {
namespace {

constexpr std::size_t kLengthBytes = 8;
using Length = std::array<std::byte, kLengthBytes>;

// Returns nothing where the count overflows 64 bits.
std::optional<std::uint64_t> byte_count(DType dtype, std::span<const std::uint64_t> shape) {
  std::uint64_t count = size_of(dtype).count;
  for (const std::uint64_t dim : shape)
    if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  return count;
}

Length little_endian(std::uint64_t number) {
  Length bytes;
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(number);
    number >>= 8;
  }
  return bytes;
}

std::uint64_t from_little_endian(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return number;
}

std::uint64_t require_sound_size(const Tensor& tensor) {
  const auto count = byte_count(tensor.dtype, tensor.shape);
  check(count.has_value(), "a tensor's dtype and shape ask for more bytes than there are");
  return *count;
}

void require_sound_names(std::span<const Tensor> tensors) {
  std::unordered_set<std::string_view> names;
  for (const Tensor& tensor : tensors) {
    check(tensor.name != kMetadataKey, "a tensor has the name that the format keeps for metadata");
    check(names.insert(tensor.name).second, "two tensors have one name");
  }
}

// Tensors with large elements come first, which aligns every tensor without holes between them; the format
// forbids holes.
std::vector<std::size_t> in_file_order(std::span<const Tensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].dtype) > size_of(tensors[b].dtype);
  });
  return order;
}

class Checker {
 public:
  Checker(std::span<const std::byte> file, std::string_view name) : file_(file), name_(name) {}

  Result<Contents> run() {
    if (file_.size() < kLengthBytes)
      return refuse(fmt::format("has {} bytes, too few for a safetensors file", file_.size()));
    const std::uint64_t length = from_little_endian(file_);
    if (length > kLargestHeader.count)
      return refuse(
          fmt::format("declares a header of {} bytes where at most {} are read: it is damaged or no "
                      "safetensors file",
                      length, kLargestHeader.count));
    if (length > file_.size() - kLengthBytes)
      return refuse(
          fmt::format("declares a header of {} bytes and has {} after its length: it is truncated or "
                      "no safetensors file",
                      length, file_.size() - kLengthBytes));
    const auto text = file_.subspan(kLengthBytes, length);
    data_ = file_.subspan(kLengthBytes + length);
    auto header = parse_header({reinterpret_cast<const char*>(text.data()), text.size()});
    if (!header) return refuse(header.error().message, header.error().code);
    return locate(std::move(*header));
  }

 private:
  Error refuse(const std::string& reason, ErrorCode code = ErrorCode::invalid_argument) const {
    return {code, fmt::format("{} {}; fetch or write the file again", name_, reason)};
  }
  Error refuse(const Entry& entry, const std::string& reason) const {
    return refuse(fmt::format("has a tensor '{}' {}", entry.name, reason));
  }

  Result<Contents> locate(Header header) const {
    auto& entries = header.entries;
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    Contents contents{{}, std::move(header.metadata)};
    std::uint64_t end = 0;
    for (Entry& entry : entries) {
      if (const auto fine = judge(entry, end); !fine) return fine.error();
      end = entry.end;
      contents.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                                  data_.subspan(entry.begin, entry.end - entry.begin)});
    }
    if (end != data_.size())
      return refuse(fmt::format("has {} bytes that belong to no tensor at its end", data_.size() - end));
    return contents;
  }

  // Checks one entry; `end` is where the tensors before it end.
  Result<void> judge(const Entry& entry, std::uint64_t end) const {
    if (entry.end < entry.begin)
      return refuse(entry, fmt::format("that ends at {} before it begins at {}", entry.end, entry.begin));
    if (entry.end > data_.size())
      return refuse(entry, fmt::format("that ends at {} where there are {} bytes: it is truncated", entry.end,
                                       data_.size()));
    if (entry.begin < end)
      return refuse(entry,
                    fmt::format("that begins at {}, inside the one that ends at {}", entry.begin, end));
    if (entry.begin > end)
      return refuse(entry, fmt::format("that begins at {}, after a hole from {}", entry.begin, end));
    const auto needed = byte_count(entry.dtype, entry.shape);
    if (needed == entry.end - entry.begin) return {};
    return refuse(entry,
                  fmt::format("of shape [{}] and dtype {}, which needs {} bytes and has {}",
                              fmt::join(entry.shape, ","), to_string(entry.dtype),
                              needed ? std::to_string(*needed) : "more than 2^64", entry.end - entry.begin));
  }

  const std::span<const std::byte> file_;
  const std::string_view name_;
  std::span<const std::byte> data_;
};

Mapping map(const InputFile& file) {
  if (file.size() == Bytes{0}) return {};
  void* start = mmap(nullptr, file.size().count, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (start != MAP_FAILED) return Mapping(start, file.size().count);
  throw EnvironmentError(fmt::format("mapping {} of {} failed ({}): raise the process's memory limits",
                                     readable(file.size()), file.path().native(), std::strerror(errno)),
                         {"", file.path().native(), 0, errno});
}

}  // namespace

const Tensor* Contents::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Result<void> write(const std::filesystem::path& path, std::span<const Tensor> tensors,
                   const Metadata& metadata) {
  for (const Tensor& tensor : tensors)
    check(require_sound_size(tensor) == tensor.bytes.size(),
          "a tensor's bytes are not as many as its dtype and shape ask for");
  return write(path, tensors, metadata, [&](std::size_t i, std::uint64_t) {
    return i < tensors.size() ? tensors[i].bytes : std::span<const std::byte>{};
  });
}

Result<void> write(const std::filesystem::path& path, std::span<const Tensor> tensors,
                   const Metadata& metadata,
                   const std::function<std::span<const std::byte>(std::size_t, std::uint64_t)>& bytes_of) {
  require_sound_names(tensors);
  const std::vector<std::size_t> order = in_file_order(tensors);
  Header header{{}, metadata};
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    const std::uint64_t begin = end;
    end += require_sound_size(tensors[i]);
    header.entries.push_back({tensors[i].name, tensors[i].dtype, tensors[i].shape, begin, end});
  }
  const std::string text = print_header(header);
  if (text.size() > kLargestHeader.count)
    return Error{
        ErrorCode::too_large,
        fmt::format("cannot write {}: the names of its {} tensors make a header of {} where {} are "
                    "allowed; write several files",
                    path.native(), tensors.size(), readable(Bytes{text.size()}), readable(kLargestHeader))};
  const Length length = little_endian(text.size());
  std::uint64_t given = 0;  // bytes of all tensors
  auto entry = header.entries.begin();
  const auto next = [&, begun = 0]() mutable -> std::span<const std::byte> {
    if (begun++ == 0) return length;
    if (begun == 2) return std::as_bytes(std::span(text));
    while (entry != header.entries.end() && entry->end == given) ++entry;
    if (entry == header.entries.end()) return bytes_of(tensors.size(), 0).first(0);
    const std::size_t index = order[static_cast<std::size_t>(entry - header.entries.begin())];
    const auto bytes = bytes_of(index, given - entry->begin);
    check(bytes.size() <= entry->end - given, "a tensor's bytes are as many as its dtype and shape ask for");
    given += bytes.size();
    return bytes;
  };
  return replace_file(path, Pieces{Bytes{kLengthBytes + text.size() + end}, next});
}

Result<Contents> parse(std::span<const std::byte> file, std::string_view name) {
  return Checker(file, name).run();
}

Result<File> read(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) return file.error();
  Mapping mapping = map(*file);
  auto contents = parse(mapping.bytes(), path.native());
  if (!contents) return contents.error();
  return File(std::move(mapping), std::move(*contents));
}

}  // namespace terrace::safetensors
