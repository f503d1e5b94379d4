// SPDX-License-Identifier: Apache-2.0
#include "ann/neighbour_file.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "base/replace_file.hpp"

namespace terrace::ann {
namespace {

constexpr std::size_t kHeader = 2 * sizeof(std::uint32_t), kEach = sizeof(std::uint32_t) + sizeof(float);

Error refuse(std::string_view name, const std::string& reason) {
  return {ErrorCode::invalid_argument, fmt::format("{} {}; make it with `terrace ann truth`", name, reason)};
}

}  // namespace

Result<Neighbours> parse_neighbours(std::span<const std::byte> file, std::string_view name) {
  if (file.size() < kHeader) return refuse(name, "has no header of 8 bytes");
  std::array<std::uint32_t, 2> header{};
  std::memcpy(header.data(), file.data(), kHeader);
  const auto [queries, k] = header;
  const std::uint64_t all = std::uint64_t{queries} * k;
  if (all > (file.size() - kHeader) / kEach || kHeader + all * kEach != file.size())
    return refuse(name,
                  fmt::format("declares {} times {} neighbours and has {} bytes", queries, k, file.size()));
  // Empty lists cost memory that the file's bytes do not vouch for.
  if (k == 0 && queries > 0) return refuse(name, "holds no neighbour for its queries");
  Neighbours neighbours(queries, std::vector<Neighbour>(k));
  const std::byte *ids = file.data() + kHeader, *distances = ids + all * sizeof(std::uint32_t);
  for (auto& list : neighbours) {
    for (Neighbour& one : list) {
      std::memcpy(&one.id, ids, sizeof one.id);
      std::memcpy(&one.distance, distances, sizeof one.distance);
      ids += sizeof one.id, distances += sizeof one.distance;
    }
  }
  return neighbours;
}

Result<Neighbours> read_neighbours(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) return file.error();
  return parse_neighbours(file->contents(), path.native());
}

Result<void> write_neighbours(const std::filesystem::path& path, const Neighbours& neighbours) {
  const std::size_t k = neighbours.empty() ? 0 : neighbours.front().size();
  std::vector<std::uint32_t> ids{static_cast<std::uint32_t>(neighbours.size()),
                                 static_cast<std::uint32_t>(k)};
  std::vector<float> distances;
  for (const auto& list : neighbours) {
    check(list.size() == k, "a file holds as many neighbours for each query");
    for (const Neighbour& one : list) {
      ids.push_back(one.id);
      distances.push_back(one.distance);
    }
  }
  const std::array<std::span<const std::byte>, 2> pieces{std::as_bytes(std::span(ids)),
                                                         std::as_bytes(std::span(distances))};
  return replace_file(path, pieces);
}

}  // namespace terrace::ann
