// SPDX-License-Identifier: Apache-2.0
// Saving an index and opening it again.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ann/checked_file.hpp"
#include "ann/index.hpp"
#include "ann/index_parts.hpp"
#include "ann/write_index.hpp"
#include "base/check.hpp"
#include "base/replace_file.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {
namespace {

constexpr const char *kManifest = "manifest.json", *kFast = "fast.bin", *kSlow = "slow.bin";

Error refuse(ErrorCode code, const std::string& sentence) { return {code, sentence}; }

/// The fast part as the file holds it, piece by piece.
std::vector<std::span<const std::byte>> pieces_of(const FastPart& fast,
                                                  const std::vector<std::uint32_t>& removed) {
  std::vector<std::span<const std::byte>> pieces;
  for (std::size_t i = 1; i < fast.links.size(); ++i)
    pieces.push_back(std::as_bytes(std::span(fast.links[i])));
  pieces.push_back(std::as_bytes(std::span(fast.ids)));
  pieces.push_back(std::as_bytes(std::span(fast.vectors)));
  pieces.push_back(std::as_bytes(std::span(fast.book.centres)));
  pieces.push_back(std::as_bytes(std::span(fast.codes)));
  pieces.push_back(std::as_bytes(std::span(fast.twins)));
  pieces.push_back(std::as_bytes(std::span(removed)));
  std::erase_if(pieces, [](const auto& piece) { return piece.empty(); });
  return pieces;
}

/// Places for the same, in the same order.
std::vector<std::span<std::byte>> places_in(FastPart& fast, std::vector<std::uint32_t>& removed,
                                            const Manifest& manifest) {
  std::vector<std::span<std::byte>> places;
  if (manifest.layers.empty()) return places;
  fast.links.resize(manifest.layers.size());
  for (std::size_t i = 1; i < manifest.layers.size(); ++i) {
    fast.links[i].resize(manifest.layers[i].nodes * manifest.layers[i].links);
    places.push_back(std::as_writable_bytes(std::span(fast.links[i])));
  }
  fast.ids.resize(manifest.layers[1].nodes);
  fast.vectors.resize(manifest.layers[1].nodes * manifest.dimension);
  if (manifest.code_bytes > 0) {
    fast.book = {manifest.dimension, manifest.code_bytes,
                 std::vector<float>(Codebook::size_for(manifest.dimension))};
    fast.codes.resize((manifest.layers[0].nodes - manifest.layers[1].nodes) * manifest.code_bytes);
  }
  fast.twins.resize(manifest.twins);
  removed.resize(manifest.removed);
  places.push_back(std::as_writable_bytes(std::span(fast.ids)));
  places.push_back(std::as_writable_bytes(std::span(fast.vectors)));
  places.push_back(std::as_writable_bytes(std::span(fast.book.centres)));
  places.push_back(std::as_writable_bytes(std::span(fast.codes)));
  places.push_back(std::as_writable_bytes(std::span(fast.twins)));
  places.push_back(std::as_writable_bytes(std::span(removed)));
  return places;
}

/// What no honest index holds, checksums or not.
const char* fault_in(const FastPart& fast, const std::vector<std::uint32_t>& removed) {
  for (std::size_t i = 1; i < fast.links.size(); ++i) {
    const std::uint64_t nodes = fast.layers[i].nodes;
    if (std::any_of(fast.links[i].begin(), fast.links[i].end(),
                    [&](std::uint32_t link) { return link >= nodes && link != kNoLink; }))
      return "a link that leads to no node";
  }
  const std::uint64_t vectors = fast.vectors_held();
  const auto unknown = [&](std::uint32_t id) { return id >= vectors; };
  if (std::any_of(fast.ids.begin(), fast.ids.end(), unknown) ||
      std::any_of(removed.begin(), removed.end(), unknown))
    return "an id of no vector";
  if (std::any_of(fast.twins.begin(), fast.twins.end(),
                  [&](const Twin& t) { return unknown(t.id) || unknown(t.other); }))
    return "an id of no vector";
  if (!std::is_sorted(fast.twins.begin(), fast.twins.end(),
                      [](const Twin& a, const Twin& b) { return a.id < b.id; }))
    return "equal vectors out of order";
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(fast.vectors.begin(), fast.vectors.end(), finite) ||
      !std::all_of(fast.book.centres.begin(), fast.book.centres.end(), finite))
    return "a value that is no finite number";
  return nullptr;
}

Result<FastPart> read_fast(const std::filesystem::path& path, const Manifest& manifest) {
  const auto file = open_sized(path, manifest.fast_bytes());
  if (!file) return file.error();
  // The file's size vouches for the memory that is taken here.
  FastPart fast;
  fast.layers = manifest.layers;
  fast.dimension = manifest.dimension;
  fast.metric = manifest.metric;
  fast.distance = distance_function(manifest.metric);
  std::vector<std::uint32_t> removed;
  const auto places = places_in(fast, removed, manifest);
  if (const auto read = read_checked_into(*file, manifest.fast_checksums, places); !read) return read.error();
  if (const char* fault = fault_in(fast, removed))
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("{} holds {}: build the index again", path.native(), fault));
  fast.marks = std::make_unique<Marks>(fast.vectors_held());
  for (const std::uint32_t id : removed) fast.marks->mark(id);
  return fast;
}

Result<Manifest> read_manifest(const std::filesystem::path& folder) {
  const auto path = folder / kManifest;
  const auto file = InputFile::open(path);
  if (!file)
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("{} holds no index ({}): name a folder that `terrace ann build` finished",
                              folder.native(), file.error().message));
  const auto bytes = file->contents();
  auto manifest = parse_manifest({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (manifest) return manifest;
  return refuse(manifest.error().code, fmt::format("{}: {}", path.native(), manifest.error().message));
}

/// Vectors of a record that was copied as the disk has it become floats where they lie: the last value comes
/// first, for a float begins where a byte behind it was.
void widen(std::byte* record, const SlowLayout& blocks, const SlowLayout& tight) {
  std::memmove(record + tight.id_at().count, record + blocks.id_at().count, kIdBytes.count);
  std::byte* vector = record + tight.vector_at().count;
  for (std::size_t i = blocks.dimension(); i-- > 0;) {
    const auto value = static_cast<float>(std::to_integer<unsigned>(vector[i]));
    std::memcpy(vector + i * sizeof value, &value, sizeof value);
  }
}

/// From the layout of a disk to the tight one of memory. Records come in order, none crosses a unit, and
/// pieces are whole units or end within one; so what a piece holds is copied by bytes.
Result<void> read_slow(const InputFile& file, const Manifest& manifest, const SlowLayout& tight,
                       std::byte* memory) {
  const SlowLayout blocks(manifest.layers, manifest.dimension, true, manifest.element);
  std::uint32_t node = 0;
  const auto nodes = static_cast<std::uint32_t>(tight.nodes());
  return read_checked(
      file, manifest.slow_checksums, [&](std::uint64_t offset, std::span<const std::byte> piece) {
        const std::uint64_t end = offset + piece.size();
        for (; node < nodes; ++node) {
          const std::uint64_t place = blocks.place(node);
          const std::uint64_t size =
              (node < tight.promoted() ? blocks.list_bytes() : blocks.record_bytes()).count;
          const std::uint64_t from = std::max(place, offset), to = std::min(place + size, end);
          if (from < to)
            std::memcpy(memory + tight.place(node) + (from - place), piece.data() + (from - offset),
                        to - from);
          if (place + size > end) return;
          if (node >= tight.promoted() && blocks.type() == ElementType::u8)
            widen(memory + tight.place(node), blocks, tight);
        }
      });
}

}  // namespace

Result<void> write_index(const std::filesystem::path& folder, const FastPart& fast, ElementType element,
                         const std::function<void(std::uint32_t, std::byte*)>& record) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    return refuse(ErrorCode::invalid_argument, fmt::format("cannot make the folder {} ({}): name another",
                                                           folder.native(), failed.message()));
  // From here to the end there is no index in the folder.
  std::filesystem::remove(folder / kManifest, failed);
  const std::vector<std::uint32_t> removed = fast.marks->all();
  Manifest manifest{fast.metric,
                    fast.dimension,
                    fast.layers,
                    fast.twins.size(),
                    removed.size(),
                    {},
                    {},
                    static_cast<std::uint32_t>(fast.book.parts),
                    element};
  const auto pieces = pieces_of(fast, removed);
  std::size_t piece = 0;
  auto fast_checksums = write_checked(folder / kFast, manifest.fast_bytes(), [&] {
    return piece < pieces.size() ? pieces[piece++] : std::span<const std::byte>{};
  });
  if (!fast_checksums) return fast_checksums.error();
  SlowPieces slow(SlowLayout(fast.layers, fast.dimension, true, element), record);
  auto slow_checksums = write_checked(folder / kSlow, manifest.slow_bytes(), [&] { return slow.next(); });
  if (!slow_checksums) return slow_checksums.error();
  manifest.fast_checksums = *std::move(fast_checksums);
  manifest.slow_checksums = *std::move(slow_checksums);
  const std::string text = print_manifest(manifest);
  const std::array<std::span<const std::byte>, 1> all{std::as_bytes(std::span(text))};
  return replace_file(folder / kManifest, all);
}

Result<void> Index::save(const std::filesystem::path& folder) const {
  const std::shared_lock unchanged(impl_->changing);
  const SlowLayout& from = impl_->layout;
  if (from.unit().count > 0)
    return refuse(ErrorCode::unsupported,
                  "an index that lies on a disk is not saved: save it first, then open it there");
  const auto vector_of = [&](std::uint32_t node) {
    const std::byte* at = impl_->slow_memory() + from.place(node) + from.vector_at().count;
    return std::span(reinterpret_cast<const float*>(at), from.dimension());
  };
  ElementType element = from.nodes() > from.promoted() ? ElementType::u8 : ElementType::f32;
  for (auto node = static_cast<std::uint32_t>(from.promoted());
       node < from.nodes() && element == ElementType::u8; ++node)
    element = smallest_type(vector_of(node));
  const SlowLayout to(impl_->fast.layers, from.dimension(), true, element);
  return write_index(folder, impl_->fast, element, [&](std::uint32_t node, std::byte* out) {
    const std::byte* record = impl_->slow_memory() + from.place(node);
    std::memcpy(out, record, from.list_bytes().count);
    if (node < from.promoted()) return;
    write_elements(element, vector_of(node), out + to.vector_at().count);
    std::memcpy(out + to.id_at().count, record + from.id_at().count, kIdBytes.count);
  });
}

Result<Index> Index::open(const std::filesystem::path& folder, const OpenOptions& options) {
  if (options.searchers < 1 || options.threads < 1)
    return refuse(ErrorCode::invalid_argument, "an index has at least one searcher of at least one thread");
  const auto manifest = read_manifest(folder);
  if (!manifest) return manifest.error();
  auto impl = std::make_unique<Impl>();
  impl->metric = manifest->metric;
  impl->options.metric = manifest->metric;
  impl->options.searchers = options.searchers;
  impl->options.threads = options.threads;
  impl->searchers_most = options.searchers;
  impl->threads = options.threads;
  auto slow = open_sized(folder / kSlow, manifest->slow_bytes());
  if (!slow) return slow.error();
  auto fast = read_fast(folder / kFast, *manifest);
  if (!fast) return fast.error();
  impl->fast = *std::move(fast);
  if (options.placement == Placement::disk && impl->fast.nodes() > 0) {
    impl->layout = SlowLayout(manifest->layers, manifest->dimension, true, manifest->element);
    const Bytes least = least_cache(impl->layout) * impl->walks();
    impl->cache = options.cache.count > 0 ? options.cache : std::max(kDefaultCache, least);
    if (impl->cache < least)
      return refuse(
          ErrorCode::too_large,
          fmt::format(
              "a cache of {} is too small for this index on a disk and {} threads: give it at least {}",
              readable(impl->cache), impl->walks(), readable(least)));
    impl->open_disk(folder / kSlow);
    return Index(std::move(impl));
  }
  impl->layout = SlowLayout(manifest->layers, manifest->dimension, false);
  impl->tier = options.slow;
  if (const auto room = impl->reserve(); !room) return room.error();
  if (const auto read = read_slow(*slow, *manifest, impl->layout, impl->slow_memory()); !read)
    return read.error();
  return Index(std::move(impl));
}

Result<void> verify_index(const std::filesystem::path& folder) {
  const auto manifest = read_manifest(folder);
  if (!manifest) return manifest.error();
  if (const auto fast = read_fast(folder / kFast, *manifest); !fast) return fast.error();
  const auto slow = open_sized(folder / kSlow, manifest->slow_bytes());
  if (!slow) return slow.error();
  return read_checked(*slow, manifest->slow_checksums, [](std::uint64_t, std::span<const std::byte>) {});
}

}  // namespace terrace::ann
