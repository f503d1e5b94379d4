// SPDX-License-Identifier: Apache-2.0
#include "terrace/ann.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/json_reader.hpp"
#include "capi/guard.hpp"
#include "capi/watch.hpp"
#include "terrace/terrace_ann.h"

struct terrace_ann {
  terrace::ann::Index index;
};

namespace terrace::capi {
namespace {

using ann::Vectors;

Vectors vectors_of(const float* values, std::uint64_t count, std::uint64_t dimension) {
  require(values != nullptr || count == 0, "vectors have an address");
  if (dimension == 0 || dimension > ann::kMostDimensions)
    throw std::invalid_argument(
        fmt::format("a vector has 1 to {} dimensions, not {}", ann::kMostDimensions, dimension));
  return {dimension, std::vector<float>(values, values + count * dimension)};
}

/// Reads the keys of an object into the fields they name; refuses other keys.
class Options {
 public:
  Options(const char* text, std::initializer_list<std::string_view> keys)
      : json_(parse_json(text == nullptr ? "{}" : text)), object_(JsonValue(json_, ""), keys) {}

  template <class T>
  void number(const char* key, T& field) const {
    if (const auto value = object_.find(key))
      field = static_cast<T>(
          value->integer(0, std::numeric_limits<std::int64_t>::max() >> (sizeof(T) < 8 ? 32 : 0)));
  }
  void bytes(const char* key, Bytes& field) const { number(key, field.count); }
  std::optional<std::string> text(const char* key) const {
    const auto value = object_.find(key);
    return value ? std::optional<std::string>(value->text()) : std::nullopt;
  }

 private:
  const nlohmann::json json_;
  const JsonObject object_;
};

ann::BuildOptions build_options(const char* text, const terrace_watch* watch) {
  const Options given(text, {"metric", "links", "ef_construction", "fast_bytes", "cache_bytes", "code_bytes",
                             "searchers", "threads", "builders", "seed"});
  ann::BuildOptions options;
  if (const auto metric = given.text("metric")) options.metric = expect(ann::parse_metric(*metric));
  given.number("links", options.links);
  given.number("ef_construction", options.ef_construction);
  given.bytes("fast_bytes", options.fast);
  given.bytes("cache_bytes", options.cache);
  given.number("code_bytes", options.code_bytes);
  given.number("searchers", options.searchers);
  given.number("threads", options.threads);
  given.number("builders", options.builders);
  given.number("seed", options.seed);
  options.progress = [sink = sink_of(watch)](std::string_view stage, double share) {
    sink(fmt::format("{}: {:.0f}%", stage, share * 100));
  };
  return options;
}

ann::OpenOptions open_options(const char* text) {
  const Options given(text, {"placement", "cache_bytes", "searchers", "threads"});
  ann::OpenOptions options;
  if (const auto placement = given.text("placement")) {
    if (*placement != "memory" && *placement != "disk")
      throw std::invalid_argument(fmt::format("'{}' is no placement: choose memory or disk", *placement));
    options.placement = *placement == "disk" ? ann::Placement::disk : ann::Placement::memory;
  }
  given.bytes("cache_bytes", options.cache);
  given.number("searchers", options.searchers);
  given.number("threads", options.threads);
  return options;
}

ann::SearchOptions search_options(const char* text) {
  const Options given(text, {"ef1", "ef0", "beam", "shares", "ahead"});
  ann::SearchOptions options;
  given.number("ef1", options.ef1);
  given.number("ef0", options.ef0);
  given.number("beam", options.beam);
  given.number("shares", options.shares);
  given.number("ahead", options.ahead);
  return options;
}

void write_answers(const ann::Neighbours& found, std::uint64_t k, std::uint32_t* ids, float* distances) {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  for (const auto& list : found) {
    for (std::uint64_t i = 0; i < k; ++i) {
      *ids++ = i < list.size() ? list[i].id : kNone;
      *distances++ = i < list.size() ? list[i].distance : std::numeric_limits<float>::infinity();
    }
  }
}

nlohmann::json describe(const ann::Index& index) {
  const ann::IndexSize size = index.size();
  const ann::SearchStatistics done = index.statistics();
  return {{"vectors", size.vectors},
          {"removed", size.removed},
          {"promoted", size.promoted},
          {"dimension", size.dimension},
          {"metric", ann::to_string(index.metric())},
          {"fast_bytes", size.fast().count},
          {"slow_bytes", size.slow().count},
          {"queries", done.queries},
          {"fast_distances", done.fast_distances},
          {"slow_distances", done.slow_distances},
          {"guesses", done.guesses},
          {"reads", done.reads},
          {"rounds", done.rounds}};
}

}  // namespace
}  // namespace terrace::capi

using namespace terrace::capi;
using terrace::ann::Index;

int terrace_ann_build(const float* vectors, uint64_t count, uint64_t dimension, const char* options,
                      const terrace_watch* watch, terrace_ann** index) {
  return guarded([&] {
    require(index != nullptr, "there is a place for the index");
    const auto given = build_options(options, watch);
    *index = new terrace_ann{expect(Index::build(vectors_of(vectors, count, dimension), given))};
  });
}

int terrace_ann_build_file(const char* data, const char* folder, const char* options, uint64_t memory_bytes,
                           const terrace_watch* watch) {
  return guarded([&] {
    require(data != nullptr && folder != nullptr, "a build has a file and a folder");
    expect(terrace::ann::build_index(data, folder, build_options(options, watch), {memory_bytes}));
  });
}

int terrace_ann_open(const char* folder, const char* options, terrace_ann** index) {
  return guarded([&] {
    require(folder != nullptr && index != nullptr, "an index has a folder and a place");
    *index = new terrace_ann{expect(Index::open(folder, open_options(options)))};
  });
}

int terrace_ann_save(const terrace_ann* index, const char* folder) {
  return guarded([&] {
    require(index != nullptr && folder != nullptr, "an index is saved into a folder");
    expect(index->index.save(folder));
  });
}

void terrace_ann_close(terrace_ann* index) { delete index; }

int terrace_ann_add(terrace_ann* index, const float* vectors, uint64_t count, uint64_t dimension,
                    uint32_t ef_construction) {
  return guarded([&] {
    require(index != nullptr, "there is an index");
    expect(index->index.add(vectors_of(vectors, count, dimension), ef_construction));
  });
}

int terrace_ann_remove(terrace_ann* index, uint32_t id) {
  return guarded([&] {
    require(index != nullptr, "there is an index");
    expect(index->index.remove(id));
  });
}

int terrace_ann_search(const terrace_ann* index, const float* queries, uint64_t count, uint64_t dimension,
                       uint64_t k, const char* options, uint32_t* ids, float* distances) {
  return guarded([&] {
    require(index != nullptr && ids != nullptr && distances != nullptr,
            "there are an index and places for answers");
    const auto found =
        expect(index->index.search(vectors_of(queries, count, dimension), k, search_options(options)));
    write_answers(found, k, ids, distances);
  });
}

int terrace_ann_tune(const terrace_ann* index, const float* vectors, uint64_t vector_count,
                     const float* queries, uint64_t query_count, uint64_t dimension, uint64_t k,
                     double recall, double latency, char** chosen) {
  return guarded([&] {
    require(index != nullptr && chosen != nullptr, "there are an index and a place for what is chosen");
    const auto learnt = vectors_of(queries, query_count, dimension);
    const auto truth = expect(terrace::ann::exact_neighbours(vectors_of(vectors, vector_count, dimension),
                                                             learnt, k, index->index.metric()));
    const auto tuned = expect(index->index.tune(learnt, truth, {k, recall, terrace::Seconds{latency}}));
    const nlohmann::json result{{"ef1", tuned.options.ef1},   {"ef0", tuned.options.ef0},
                                {"beam", tuned.options.beam}, {"ahead", tuned.options.ahead},
                                {"recall", tuned.recall},     {"predicted_seconds", tuned.predicted.count()}};
    *chosen = copied(result.dump());
  });
}

int terrace_ann_describe(const terrace_ann* index, char** text) {
  return guarded([&] {
    require(index != nullptr && text != nullptr, "there are an index and a place for the text");
    *text = copied(describe(index->index).dump());
  });
}
