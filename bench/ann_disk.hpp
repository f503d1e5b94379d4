// SPDX-License-Identifier: Apache-2.0
// Row `disk`: in a share of the memory that all of it would take, the lowest layer on the disk, beside
// hnswlib on swap and mapped, Annoy and faiss mapped, each alone in a group of the same memory.
#pragma once

#include <atomic>
#include <functional>
#include <future>

#include "ann_contest.hpp"
#include "ann_counts.hpp"
#include "ann_spann.hpp"
#include "swap_file.hpp"

namespace terrace::bench {

/// What a process takes beside its index: the program, its queries, the system's share. With less, parts of
/// the program are read from the disk again and again.
constexpr Bytes kProcess{8U << 20};

/// A round counts as several reads, because a search waits for each.
inline double cost_of_reads(const Counted& one) { return one.reads + 6 * one.rounds; }

/// The setting of the fewest reads that reaches the recall, for some of the queries, with a margin for the
/// others. `open` opens the index: each setting finds the cache empty.
template <class Open>
Counted fewest_reads(const AnnData& data, Open open, double wanted) {
  constexpr std::size_t kTried = 200;
  constexpr double kMargin = 0.005;
  const AnnData some = data.some_queries(kTried);
  const auto count = [&](const ann::SearchOptions& options) { return count_search(some, open(), options); };
  std::optional<Counted> best;
  for (const std::uint32_t beam : {4U, 8U, 16U, 24U}) {
    const auto one = cheapest(count, wanted + kMargin, cost_of_reads, {8, 32, 64, 128}, beam);
    if (one && (!best || cost_of_reads(*one) < cost_of_reads(*best))) best = one;
  }
  if (!best) throw std::runtime_error("the index on the disk does not reach the recall on " + data.name);
  return *best;
}

/// The least of a contestant's settings that reaches the recall, tried without a limit.
inline std::string least_setting(const AnnData& data, const std::string& kind, const std::string& path,
                                 std::initializer_list<int> settings, double wanted) {
  for (const int setting : settings) {
    const auto contestant = open_contestant(kind, path, std::to_string(setting), data.vectors.dimension);
    ann::Neighbours found;
    for (std::size_t at = 0; at < data.queries.count(); ++at)
      found.push_back(contestant->search(data.queries, at));
    if (data.recall_of(found) >= wanted) return std::to_string(setting);
  }
  return "";
}

/// What a search without a clock found, kept for the next run.
template <class Find>
std::string kept_setting(const AnnData& data, const std::string& what, Find find) {
  const auto path = data.file("-" + what + "-setting");
  std::string setting;
  if (std::getline(std::ifstream(path), setting)) return setting;
  setting = find();
  std::ofstream(path) << setting << '\n';
  return setting;
}

/// Builds what a rival needs, once.
template <class Build>
std::string kept_file(const AnnData& data, const std::string& what, Build build) {
  const auto path = data.file(what);
  if (!std::filesystem::exists(path)) build(path);
  return path;
}

/// An index that was saved to be searched on its disk.
struct DiskIndex {
  std::string folder;
  Bytes cache{0};
  std::uint32_t code_bytes = 0;
  std::uint64_t promoted = 0;
  Counted setting;

  std::string words() const {
    return fmt::format("{} {} {} {}", setting.options.ef1, setting.options.ef0, setting.options.beam,
                       cache.count);
  }
};

/// Builds it, unless it is there.
inline DiskIndex saved_index(const AnnData& data, Bytes fast, std::uint32_t code_bytes) {
  ann::BuildOptions options;
  options.fast = fast;
  options.cache = fast / 4;
  options.code_bytes = code_bytes;
  DiskIndex one{
      data.file(fmt::format("-{}-{}", fast.count >> 10, code_bytes)), options.cache, code_bytes, 0, {}};
  if (!std::filesystem::exists(one.folder + "/manifest.json"))
    ann::Index::build(data.vectors, options).value().save(one.folder).value();
  return one;
}

/// Finds how it is searched with the fewest reads, too.
inline DiskIndex kept_index(const AnnData& data, Bytes fast, std::uint32_t code_bytes) {
  DiskIndex one = saved_index(data, fast, code_bytes);
  const auto open = [&] {
    return ann::Index::open(one.folder, {.placement = ann::Placement::disk, .cache = one.cache}).value();
  };
  one.promoted = open().size().promoted;
  Counted& setting = one.setting;
  const std::string kept = kept_setting(data, fmt::format("{}-{}", fast.count >> 10, code_bytes), [&] {
    const Counted found = fewest_reads(data, open, kRecalls[0]);
    return fmt::format("{} {} {} {} {}", found.options.ef1, found.options.ef0, found.options.beam,
                       found.reads, found.rounds);
  });
  std::istringstream(kept) >> setting.options.ef1 >> setting.options.ef0 >> setting.options.beam >>
      setting.reads >> setting.rounds;
  return one;
}

inline std::uint32_t code_bytes_of(const AnnData& data, std::uint32_t divisor) {
  return divisor == 0 ? 0 : static_cast<std::uint32_t>(data.vectors.dimension / divisor);
}

/// Layouts beside one another, by reads of a query; the best of them.
inline DiskIndex best_layout(const AnnData& data, Bytes fast, std::initializer_list<std::uint32_t> divisors,
                             nlohmann::json& rows) {
  print_head(
      fmt::format("Reads of a query by layout, {} in {}, recall@10 of 0.95", data.name, readable(fast)),
      "| bytes of a code | promoted | ef1 | ef0 | beam | reads | rounds |");
  std::optional<DiskIndex> best;
  for (const std::uint32_t divisor : divisors) {
    const std::uint32_t code_bytes = code_bytes_of(data, divisor);
    const DiskIndex one = kept_index(data, fast, code_bytes);
    const Counted& setting = one.setting;
    print_line(fmt::format("| {} | {} | {} | {} | {} | {:.1f} | {:.1f} |", code_bytes, one.promoted,
                           setting.options.ef1, setting.options.ef0, setting.options.beam, setting.reads,
                           setting.rounds));
    rows.push_back({{"code_bytes", code_bytes},
                    {"promoted", one.promoted},
                    {"reads", setting.reads},
                    {"rounds", setting.rounds}});
    if (!best || cost_of_reads(setting) < cost_of_reads(best->setting)) best = one;
  }
  return *best;
}

constexpr const char* kOurs = "terrace";

/// Who takes part, each alone in a group of the same memory.
class DiskContest {
 public:
  DiskContest(const AnnData& data, Bytes limit)
      : data_(data), limit_(limit), swap_(data.file(".swap"), data.whole() * 2) {}

  void enter(const std::string& name, std::vector<std::string> kind_path_setting,
             MemoryGroup::Swap swap = MemoryGroup::Swap::none) {
    if (kind_path_setting.back().empty())
      return print_line(fmt::format("{} does not reach the recall on {}", name, data_.name));
    guarded(name, [&] {
      all_.push_back(std::make_unique<Contest>(name, data_, std::move(kind_path_setting), limit_, swap));
    });
  }

  /// In turn, with the same queries, none of which was asked before in this contest. One that is killed while
  /// its cache warms, or takes too long to warm it, is judged by those queries.
  void run(std::size_t warming, int rounds, std::size_t each) {
    std::vector<Contest*> running;
    for (const auto& one : all_) running.push_back(one.get());
    const auto ask = [&](std::size_t queries) {
      std::erase_if(running, [&](Contest* one) {
        bool quick = false;
        return !guarded(one->name(), [&] { quick = one->run(queries); }) || !quick;
      });
    };
    ask(warming);
    for (Contest* one : running) one->forget();
    for (int round = 0; round < rounds; ++round) ask(each);
    std::erase_if(all_, [](const auto& one) { return one->answered() == 0; });
  }

  /// Somebody who was timed elsewhere.
  void add(nlohmann::json row) { others_.push_back(std::move(row)); }

  /// A rival that the limit ends is named and left out; ours must not be.
  template <class Work>
  bool guarded(const std::string& name, Work work) const {
    try {
      work();
      return true;
    } catch (const std::runtime_error& error) {
      if (name == kOurs) throw;
      print_line(fmt::format("{} does not run in {}: {}", name, readable(limit_), error.what()));
      return false;
    }
  }

  /// The first that entered is the one that the others are compared with.
  nlohmann::json summary(std::uint64_t percent) const {
    std::vector<nlohmann::json> rows;
    for (const auto& one : all_) rows.push_back(one->summary());
    rows.insert(rows.end(), others_.begin(), others_.end());
    const auto number = [](const nlohmann::json& row, const char* name) { return row[name].get<double>(); };
    for (nlohmann::json& row : rows) {
      row["over"] = number(row, "mean_ms") / number(rows[0], "mean_ms");
      print_line(fmt::format(
          "| {} | {}% | {} | {:.0f} | {:.3f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.3f} |", data_.name,
          percent, row["name"].get<std::string>(), number(row, "queries"), number(row, "recall"),
          number(row, "mean_ms"), number(row, "p50_ms"), number(row, "p99_ms"), number(row, "over"),
          number(row, "group_peak_bytes") / number(row, "group_limit_bytes")));
    }
    return rows;
  }

 private:
  const AnnData& data_;
  Bytes limit_;
  SwapFile swap_;
  std::vector<std::unique_ptr<Contest>> all_;
  std::vector<nlohmann::json> others_;
};

inline std::string kept_hnswlib(const AnnData& data) {
  const ann::BuildOptions options;
  return kept_file(data, ".hnsw", [&](const auto& to) {
    Rival(data.vectors, options.links, options.ef_construction).save(to);
  });
}

inline void enter_hnswlib(const AnnData& data, DiskContest& contest) {
  const std::string path = kept_hnswlib(data);
  const std::string ef = least_setting(
      data, "hnswlib", path, {10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128}, kRecalls[0]);
  contest.enter("hnswlib on swap", {"hnswlib", path, ef}, MemoryGroup::Swap::unlimited);
  contest.enter("hnswlib mapped", {"mapped", path, ef});
}

/// Nothing where the rival is not installed.
inline std::string kept_annoy([[maybe_unused]] const AnnData& data) {
#if defined(TERRACE_BENCH_ANNOY)
  return kept_file(data, ".annoy", [&](const auto& path) { AnnoyContestant::build(data.vectors, path, 20); });
#else
  print_line("Annoy is not installed: r-cran-rcppannoy");
  return {};
#endif
}
inline std::string kept_faiss([[maybe_unused]] const AnnData& data) {
#if defined(TERRACE_BENCH_FAISS)
  return kept_file(data, ".faiss",
                   [&](const auto& path) { FaissContestant::build(data.vectors, path, 4096); });
#else
  print_line("faiss is not installed: libfaiss-dev");
  return {};
#endif
}

/// Those that were made for files.
inline void enter_mapped(const AnnData& data, DiskContest& contest) {
  if (const std::string path = kept_annoy(data); !path.empty()) {
    const auto nodes = kept_setting(data, "annoy", [&] {
      return least_setting(data, "annoy", path, {4000, 8000, 12000, 16000, 24000, 32000, 48000, 64000},
                           kRecalls[0]);
    });
    contest.enter("Annoy mapped", {"annoy", path, nodes});
  }
  if (const std::string path = kept_faiss(data); !path.empty()) {
    const auto lists = kept_setting(data, "faiss", [&] {
      return least_setting(data, "faiss", path,
                           {4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256},
                           kRecalls[0]);
    });
    contest.enter("faiss IVF mapped", {"faiss", path, lists});
  }
}

constexpr const char* kDiskColumns =
    "| data | memory | contestant | queries | recall@10 | mean, ms | p50, ms | p99, ms | its mean over "
    "terrace's | "
    "peak "
    "of the limit |";

inline void enter_spann(const AnnData& data, Bytes limit, DiskContest& contest) {
  if (!has_spann()) return print_line("SPANN is not installed: sptag");
  const Spann spann(data);
  const auto looks = spann.fastest(kRecalls[0]);
  if (!looks) return print_line("SPANN does not reach the recall on " + data.name);
  contest.guarded("SPANN", [&] { contest.add(spann.search(*looks, limit)); });
}

enum class Rivals { hnswlib, made_for_files };
/// A contest needs a quiet computer; what it is about can be built before.
enum class Stage { build, contest };

inline Bytes limit_of(const AnnData& data, std::uint64_t percent) { return data.whole() * percent / 100; }

/// Two at a time: no clock is read meanwhile.
inline void build_ahead(const std::vector<std::function<void()>>& works) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < works.size(); i = next++) works[i]();
  };
  auto other = std::async(std::launch::async, work);
  work();
  other.get();
}

inline nlohmann::json contest_on_disk(const AnnData& data, std::uint64_t percent, Rivals rivals, bool quick) {
  const Bytes limit = limit_of(data, percent);
  if (limit < kProcess * 2)
    throw std::runtime_error(fmt::format("{} is too small for this contest: {} of memory are for the process",
                                         data.name, readable(kProcess)));
  nlohmann::json layouts;
  const DiskIndex ours = quick ? best_layout(data, limit - kProcess, {4}, layouts)
                               : best_layout(data, limit - kProcess, {4, 2}, layouts);
  print_head(fmt::format("On a disk, {} in {}% of its memory, recall@10 of 0.95", data.name, percent),
             kDiskColumns);
  DiskContest contest(data, limit);
  contest.enter(kOurs, {"terrace", ours.folder, ours.words()});
  if (rivals == Rivals::hnswlib)
    enter_hnswlib(data, contest);
  else
    enter_mapped(data, contest);
  contest.run(quick ? 200 : 400, quick ? 2 : 6, 100);
  if (rivals == Rivals::made_for_files) enter_spann(data, limit, contest);
  return {{"data", data.name},
          {"percent", percent},
          {"layouts", layouts},
          {"setting", ours.words()},
          {"contestants", contest.summary(percent)}};
}

inline nlohmann::json run_disk(const std::filesystem::path& folder, bool quick, Stage stage) {
  const AnnData data = mixed_data(folder, quick ? 100'000 : 200'000, 0);
  std::vector<std::function<void()>> works{[&] { (void)kept_hnswlib(data); }};
  for (const std::uint64_t percent : {50U, 30U}) {
    for (const std::uint32_t divisor :
         quick ? std::vector<std::uint32_t>{4} : std::vector<std::uint32_t>{4, 2})
      works.push_back([&data, percent, divisor] {
        (void)saved_index(data, limit_of(data, percent) - kProcess, code_bytes_of(data, divisor));
      });
  }
  build_ahead(works);
  if (stage == Stage::build) return {};
  nlohmann::json rows;
  for (const std::uint64_t percent : {50U, 30U})
    rows.push_back(contest_on_disk(data, percent, Rivals::hnswlib, quick));
  return rows;
}

/// `count`: of descriptors; few of them get 90% of their memory, because 17% would not hold a process.
inline nlohmann::json run_sift(const std::filesystem::path& folder, bool quick, std::size_t count,
                               Stage stage) {
  const AnnData data = sift_data(folder, count > 0 ? count : quick ? 100'000 : 1'000'000);
  const std::uint64_t percent = limit_of(data, 17) < kProcess * 2 ? 90 : 17;
  const Bytes fast = limit_of(data, percent) - kProcess;
  build_ahead({[&] { (void)saved_index(data, fast, code_bytes_of(data, 2)); },
               [&] { (void)saved_index(data, fast, code_bytes_of(data, 4)); },
               [&] { (void)kept_annoy(data); }, [&] { (void)kept_faiss(data); }});
  if (has_spann()) Spann{data};
  if (stage == Stage::build) return {};
  return contest_on_disk(data, percent, Rivals::made_for_files, quick);
}

}  // namespace terrace::bench
