// SPDX-License-Identifier: Apache-2.0
// Exact neighbours and recall: the oracle that every index is measured with.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "ann/metric.hpp"
#include "ann/prepare.hpp"
#include "base/check.hpp"
#include "terrace/ann.hpp"

namespace terrace::ann {
namespace {

struct Exact {
  double distance;
  std::uint32_t id;
  auto operator<=>(const Exact&) const = default;
};

std::vector<Neighbour> nearest(const Vectors& vectors, std::span<const float> query, std::size_t k,
                               Metric metric) {
  std::vector<Exact> heap;  // the farthest of the k nearest so far on top
  heap.reserve(k + 1);
  for (std::size_t row = 0; row < vectors.count() && k > 0; ++row) {
    const Exact one{exact_distance(metric, query, vectors[row]), static_cast<std::uint32_t>(row)};
    if (heap.size() == k && !(one < heap.front())) continue;
    heap.push_back(one);
    std::push_heap(heap.begin(), heap.end());
    if (heap.size() <= k) continue;
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
  }
  std::sort_heap(heap.begin(), heap.end());
  std::vector<Neighbour> answer;
  for (const Exact& one : heap) answer.push_back({one.id, static_cast<float>(one.distance)});
  return answer;
}

/// By id, or as near as the farthest of them: floats that were added in another order differ by a few bits.
bool is_among(std::span<const Neighbour> best, const Neighbour& one) {
  constexpr float kRounding = 1e-5F;
  const float farthest = best.back().distance;
  return one.distance <= farthest + kRounding * std::fabs(farthest) ||
         std::any_of(best.begin(), best.end(), [&](const Neighbour& other) { return other.id == one.id; });
}

}  // namespace

Result<Neighbours> exact_neighbours(const Vectors& vectors, const Vectors& queries, std::size_t k,
                                    Metric metric, unsigned threads) {
  if (const auto good = check_vectors(vectors, metric, "vector"); !good) return good.error();
  if (const auto good = check_vectors(queries, metric, "query"); !good) return good.error();
  if (queries.dimension != vectors.dimension)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("queries of {} dimensions cannot be compared with vectors "
                             "of {}",
                             queries.dimension, vectors.dimension)};
  Neighbours answers(queries.count());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < answers.size(); i = next++)
      answers[i] = nearest(vectors, queries[i], std::min(k, vectors.count()), metric);
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  return answers;
}

double recall(const Neighbours& found, const Neighbours& truth, std::size_t k) {
  check(found.size() == truth.size(), "recall compares as many answers as there are truths");
  std::size_t right = 0, wanted = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto best = std::span(truth[i]).first(std::min(k, truth[i].size()));
    const auto answer = std::span(found[i]).first(std::min(best.size(), found[i].size()));
    right += static_cast<std::size_t>(std::count_if(
        answer.begin(), answer.end(), [&](const Neighbour& one) { return is_among(best, one); }));
    wanted += best.size();
  }
  return wanted == 0 ? 1 : static_cast<double>(right) / static_cast<double>(wanted);
}

}  // namespace terrace::ann
