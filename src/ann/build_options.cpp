// SPDX-License-Identifier: Apache-2.0
#include "ann/build_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ann/layout.hpp"
#include "ann/searcher.hpp"

namespace terrace::ann {
namespace {

constexpr std::uint32_t kLeastLinks = 2, kMostLinks = 1024;

Error refuse(const std::string& sentence) { return {ErrorCode::invalid_argument, sentence}; }

}  // namespace

Result<void> check_options(const BuildOptions& options, std::size_t dimension) {
  if (options.links < kLeastLinks || options.links > kMostLinks)
    return refuse(fmt::format("a node has {} to {} links, not {}", kLeastLinks, kMostLinks, options.links));
  if (options.ef_construction < 1 || options.ef_construction > kMostEf)
    return refuse(
        fmt::format("ef_construction lies between 1 and {}, not at {}", kMostEf, options.ef_construction));
  if (options.searchers < 1 || options.threads < 1 || options.builders < 1)
    return refuse("an index has at least one searcher of at least one thread, and one builder");
  if (options.code_bytes > dimension)
    return refuse(fmt::format("a code has at most a byte for each of the {} dimensions, not {}", dimension,
                              options.code_bytes));
  return {};
}

Result<std::uint64_t> promoted_for(std::uint64_t nodes, std::uint64_t twins, std::size_t dimension,
                                   const BuildOptions& options) {
  if (options.fast.count == 0) return std::max<std::uint64_t>(1, nodes / options.links);
  const Bytes taken = Searcher::size_for(nodes, options.threads, options.code_bytes) * options.searchers +
                      options.cache + Bytes{sizeof(Twin)} * twins + Marks::size_for(nodes + twins);
  const Bytes rest = options.fast > taken ? options.fast - taken : Bytes{0};
  const std::uint64_t promoted = most_promoted(nodes, options.links, dimension, options.code_bytes, rest);
  if (promoted > 0) return promoted;
  const auto one = promoted_layers(nodes, 1, options.links);
  const Bytes least =
      taken + fast_size(one, dimension).total() + codes_size(one, dimension, options.code_bytes);
  return Error{
      ErrorCode::too_large,
      fmt::format("an index of {} vectors does not work in {} of fast memory, of which {} are for searching: "
                  "give it at least {}",
                  nodes, readable(options.fast), readable(taken), readable(least))};
}

}  // namespace terrace::ann
