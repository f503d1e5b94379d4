// SPDX-License-Identifier: Apache-2.0
// Links as they lie in the slow part. They may come from a file that others wrote: none is followed unseen.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "ann/layout.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {

inline void check_link(std::uint32_t node, std::uint32_t link, std::uint64_t nodes) {
  if (link < nodes) [[likely]]
    return;
  throw EnvironmentError(
      fmt::format("node {} of the index has a link to node {}, and there are {}: the index "
                  "is damaged, build it again",
                  node, link, nodes),
      {});
}

inline void append_links(const std::byte* list, const SlowLayout& layout, std::uint32_t node,
                         std::vector<std::uint32_t>& out) {
  for (std::uint32_t i = 0; i < layout.links(); ++i) {
    std::uint32_t link = kNoLink;
    std::memcpy(&link, list + i * sizeof link, sizeof link);
    if (link == kNoLink) return;
    check_link(node, link, layout.nodes());
    out.push_back(link);
  }
}

}  // namespace terrace::ann
