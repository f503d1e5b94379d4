// SPDX-License-Identifier: Apache-2.0
#include "exec/access_count.hpp"

#include <algorithm>
#include <bit>

#include "profile/roofline.hpp"
#include "tiers/mapping.hpp"

namespace terrace {
namespace {

/// Large operands are opened by several pages at once: a sweep over one takes no more faults than this.
constexpr std::size_t kFaultsPerSweep = 1024;

std::span<std::byte> own_pages(std::byte* region, Bytes bytes) {
  const std::uint64_t page = page_size().count, begin = reinterpret_cast<std::uintptr_t>(region);
  const std::uint64_t first = round_up(Bytes{begin}, page_size()).count;
  const std::uint64_t last = round_down(Bytes{begin + bytes.count}, page_size()).count;
  if (last < first + page) return {};
  return {region + (first - begin), static_cast<std::size_t>(last - first)};
}

std::size_t pages_per_fault(std::size_t bytes) {
  return std::bit_floor(std::max<std::size_t>(1, bytes / page_size().count / kFaultsPerSweep));
}

}  // namespace

Result<AccessCount> AccessCount::start(const Graph& graph) {
  auto watch = PageWatch::start();
  if (!watch) return watch.error();
  return AccessCount(graph, *std::move(watch));
}

AccessCount::AccessCount(const Graph& graph, std::unique_ptr<PageWatch> watch)
    : graph_(graph), watch_(std::move(watch)) {
  for (const Kernel& kernel : graph.kernels) sums_.emplace_back(operand_count(kernel));
}

void AccessCount::before(const RunAction& run) {
  watched_.clear();
  for (std::size_t i = 0; i < run.operands.size(); ++i) {
    const auto pages = own_pages(run.operands[i], run.regions[i]);
    const bool again = std::any_of(watched_.begin(), watched_.end(),
                                   [&](std::span<std::byte> other) { return other.data() == pages.data(); });
    watched_.push_back(pages);
    if (!pages.empty() && !again) watch_->add(pages, pages_per_fault(pages.size()));
  }
}

void AccessCount::after(const RunAction& run) {
  std::vector<Sum>& sums = sums_[run.kernel];
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    const std::span<std::byte> pages = watched_[i];
    if (pages.empty()) continue;
    const PageAccesses counted = watch_->remove(pages.data());
    // One tensor may be several operands.
    for (std::size_t j = i; j < watched_.size(); ++j) {
      if (watched_[j].data() != pages.data()) continue;
      if (counted.complete) add(sums[j], counted, pages.size() / page_size().count);
      watched_[j] = {};
    }
  }
}

void AccessCount::add(Sum& sum, const PageAccesses& counted, std::uint64_t pages) {
  sum.reads += static_cast<double>(counted.reads) / static_cast<double>(pages);
  sum.writes += static_cast<double>(counted.writes) / static_cast<double>(pages);
  sum.pages = pages;
  ++sum.runs;
}

KernelAccesses AccessCount::result() const {
  KernelAccesses result(sums_.size());
  for (std::uint32_t k = 0; k < sums_.size(); ++k) {
    for (std::size_t i = 0; i < sums_[k].size(); ++i) {
      const Sum& sum = sums_[k][i];
      result[k].push_back(sum.runs > 0 ? Accesses{sum.reads / sum.runs, sum.writes / sum.runs, sum.pages}
                                       : assumed_accesses(graph_, {k}, i));
    }
  }
  return result;
}

}  // namespace terrace
