// SPDX-License-Identifier: Apache-2.0
#include "ann/twins.hpp"

#include <algorithm>
#include <bit>

namespace terrace::ann {
namespace {

/// The rows of one hash, of which nearly always all are equal.
void compare_rows(std::span<const HashedRow> same,
                  const std::function<bool(std::uint32_t, std::uint32_t)>& equal, std::vector<Twin>& twins) {
  std::vector<std::uint32_t> different;
  for (const HashedRow& one : same) {
    const auto first = std::find_if(different.begin(), different.end(),
                                    [&](std::uint32_t row) { return equal(row, one.row); });
    if (first == different.end())
      different.push_back(one.row);
    else
      twins.push_back({*first, one.row});
  }
}

}  // namespace

std::uint64_t hash_of(std::span<const float> vector) {
  std::uint64_t hash = 0;
  // Adding zero makes both zeros one.
  for (const float value : vector)
    hash = (hash ^ std::bit_cast<std::uint32_t>(value + 0.0F)) * 0x9E3779B97F4A7C15;
  return hash;
}

std::vector<Twin> find_twins(std::vector<HashedRow> rows,
                             const std::function<bool(std::uint32_t, std::uint32_t)>& equal) {
  std::sort(rows.begin(), rows.end());
  std::vector<Twin> twins;
  for (std::size_t first = 0, end = 0; first < rows.size(); first = end) {
    while (end < rows.size() && rows[end].hash == rows[first].hash) ++end;
    if (end - first > 1) compare_rows(std::span(rows).subspan(first, end - first), equal, twins);
  }
  std::sort(twins.begin(), twins.end(),
            [](const Twin& a, const Twin& b) { return a.id < b.id || (a.id == b.id && a.other < b.other); });
  return twins;
}

Distinct keep_distinct(Vectors& vectors) {
  const auto count = static_cast<std::uint32_t>(vectors.count());
  std::vector<HashedRow> rows;
  rows.reserve(count);
  for (std::uint32_t row = 0; row < count; ++row) rows.push_back({hash_of(vectors[row]), row});
  Distinct distinct;
  distinct.twins = find_twins(std::move(rows), [&](std::uint32_t a, std::uint32_t b) {
    return std::equal(vectors[a].begin(), vectors[a].end(), vectors[b].begin());
  });
  std::vector<bool> dropped(count);
  for (const Twin& twin : distinct.twins) dropped[twin.other] = true;
  auto out = vectors.values.begin();
  for (std::uint32_t row = 0; row < count; ++row) {
    if (dropped[row]) continue;
    const auto in = vectors.values.begin() + static_cast<std::ptrdiff_t>(row * vectors.dimension);
    // Nothing moves before the first gap.
    out = in == out ? out + static_cast<std::ptrdiff_t>(vectors.dimension)
                    : std::copy(in, in + static_cast<std::ptrdiff_t>(vectors.dimension), out);
    distinct.ids.push_back(row);
  }
  vectors.values.erase(out, vectors.values.end());
  return distinct;
}

}  // namespace terrace::ann
