// SPDX-License-Identifier: Apache-2.0
// SPANN, the rival that was made for disks: Debian's sptag-ssdserving, which reads a file of settings, asks
// all queries one by one and prints its own times. It is built once, and searched alone in a group of memory.
#pragma once

#include <sstream>

#include "ann_contest.hpp"

namespace terrace::bench {

inline bool has_spann() { return std::filesystem::exists("/usr/bin/sptag-ssdserving"); }

class Spann {
 public:
  explicit Spann(const AnnData& data) : data_(data), folder_(data.file("-spann")) {
    std::filesystem::create_directories(folder_);
    if (std::filesystem::exists(folder_ / "SPTAGFullList.bin")) return;
    write_bytes(data.vectors, folder_ / "vectors.u8bin");
    write_bytes(data.queries, folder_ / "queries.u8bin");
    run(settings(Truth::none, {}), nullptr);
    if (!std::filesystem::exists(folder_ / "SPTAGFullList.bin"))
      throw std::runtime_error("SPANN could not be built: see " + (folder_ / "log").native());
  }

  /// How a search looks: lists that it reads, and heads that it compares to choose them.
  struct Looks {
    int lists = 0, heads = 0;
    double recall = 0, mean_ms = 0;
  };

  /// The fastest that reaches the recall, tried without a limit; none where none does.
  std::optional<Looks> fastest(double wanted) const {
    std::optional<Looks> best;
    for (const int heads : {512, 1024, 2048}) {
      for (const int lists : {8, 12, 16, 24, 32, 48, 64, 96}) {
        Looks one{lists, heads};
        const std::string log = run(settings(Truth::known, one), nullptr);
        const std::size_t at = log.find("Recall10@10: ");
        if (at == log.npos)
          throw std::runtime_error("SPANN does not search: see " + (folder_ / "log").native());
        one.recall = std::stod(log.substr(at + 13));
        one.mean_ms = row_after(log, "Total Latency Distribution:").at(0);
        if (one.recall < wanted) continue;
        if (!best || one.mean_ms < best->mean_ms) best = one;
        break;
      }
    }
    return best;
  }

  /// The middle one of three runs within the limit. Its own times: only the search, without starting.
  nlohmann::json search(const Looks& looks, Bytes limit) const {
    std::vector<nlohmann::json> runs;
    for (int round = 0; round < 3; ++round) {
      drop_all_cached(folder_);
      const MemoryGroup group("ann-spann", limit, MemoryGroup::Swap::none);
      const std::string log = run(settings(Truth::none, looks), &group);
      const std::vector<double> total = row_after(log, "Total Latency Distribution:"),
                                reads = row_after(log, "Total Disk IO Distribution:");
      runs.push_back({{"name", "SPANN"},
                      {"mean_ms", total.at(0)},
                      {"p50_ms", total.at(1)},
                      {"p99_ms", total.at(4)},
                      {"recall", looks.recall},
                      {"reads", reads.at(0)},
                      {"lists", looks.lists},
                      {"heads", looks.heads},
                      {"queries", data_.queries.count()},
                      {"group_limit_bytes", group.limit().count},
                      {"group_peak_bytes", group.peak().count}});
    }
    std::sort(runs.begin(), runs.end(),
              [](const auto& a, const auto& b) { return a["mean_ms"] < b["mean_ms"]; });
    return runs[1];
  }

 private:
  /// Recall needs the vectors in memory, so it is not asked for within a limit.
  enum class Truth { none, known };

  static void write_bytes(const ann::Vectors& vectors, const std::filesystem::path& path) {
    std::ofstream out(path, std::ios::binary);
    const std::uint32_t header[] = {static_cast<std::uint32_t>(vectors.count()),
                                    static_cast<std::uint32_t>(vectors.dimension)};
    out.write(reinterpret_cast<const char*>(header), sizeof header);
    for (const float one : vectors.values) out.put(static_cast<char>(static_cast<unsigned char>(one)));
    if (!out.flush()) throw std::runtime_error("cannot write " + path.native());
  }

  /// Those of its manual for a million SIFT vectors, but of bytes, of which 3 pages hold as many as 12 do of
  /// floats, and with half the checks when vectors are assigned to heads; without `looks`, it is built and
  /// not searched.
  std::string settings(Truth truth, std::optional<Looks> looks) const {
    const bool build = !looks.has_value();
    const std::string at = folder_.native();
    std::string text = fmt::format(
        "[Base]\nValueType=UInt8\nDistCalcMethod=L2\nIndexAlgoType=BKT\nDim={}\nVectorPath={}/vectors.u8bin\n"
        "VectorType=DEFAULT\nQueryPath={}/queries.u8bin\nQueryType=DEFAULT\nWarmupPath={}/queries.u8bin\n"
        "WarmupType=DEFAULT\nIndexDirectory={}\n",
        data_.vectors.dimension, at, at, at, at);
    if (truth == Truth::known)
      text += fmt::format("TruthPath={}\nTruthType=DEFAULT\n", data_.file(".ibin").native());
    text += fmt::format(
        "[SelectHead]\nisExecute={0}\nTreeNumber=1\nBKTKmeansK=32\nBKTLeafSize=8\nSamplesNumber=1000\n"
        "SelectThreshold=50\nSplitFactor=6\nSplitThreshold=100\nRatio=0.16\nNumberOfThreads=2\n"
        "BKTLambdaFactor=-1\n[BuildHead]\nisExecute={0}\nNeighborhoodSize=32\nTPTNumber=32\nTPTLeafSize="
        "2000\n"
        "MaxCheck=8192\nMaxCheckForRefineGraph=8192\nRefineIterations=3\nNumberOfThreads=2\n"
        "BKTLambdaFactor=-1\n[BuildSSDIndex]\nisExecute={0}\nBuildSsdIndex={0}\nInternalResultNum=64\n"
        "ReplicaCount=8\nPostingPageLimit=3\nNumberOfThreads=2\nMaxCheck=4096\nTmpDir=/tmp/\n",
        build);
    if (!build)
      text += fmt::format(
          "[SearchSSDIndex]\nisExecute=true\nBuildSsdIndex=false\nInternalResultNum={}\nNumberOfThreads=1\n"
          "HashTableExponent=4\nResultNum={}\nMaxCheck={}\nMaxDistRatio=8.0\nSearchPostingPageLimit=3\n",
          looks->lists, kNeighbours, looks->heads);
    return text;
  }

  /// What it printed.
  std::string run(const std::string& settings, const MemoryGroup* group) const {
    const auto ini = folder_ / "settings.ini", log = folder_ / "log";
    std::ofstream(ini) << settings;
    // The shell's own name has no part in it: "$0" and "$1" are the two paths.
    const std::vector<std::string> command{"/bin/sh", "-c",
                                           "sptag-ssdserving \"$0\" > \"$1\" 2>&1; echo \"$?\"", ini, log};
    LineProcess process(group != nullptr ? group->within(command) : command, {});
    if (const std::string status = process.read_line(); status != "0")
      throw std::runtime_error(fmt::format("SPANN ended with {}: see {}", status, log.native()));
    std::ostringstream text;
    text << std::ifstream(log).rdbuf();
    return text.str();
  }

  /// The numbers two lines below a heading, behind the level of the log.
  static std::vector<double> row_after(const std::string& log, const std::string& heading) {
    std::istringstream in(log.substr(std::min(log.size(), log.find(heading))));
    std::string line, level;
    for (int i = 0; i < 3; ++i) std::getline(in, line);
    std::istringstream row(line);
    row >> level;
    std::vector<double> numbers;
    for (double one = 0; row >> one;) numbers.push_back(one);
    return numbers;
  }

  const AnnData& data_;
  std::filesystem::path folder_;
};

}  // namespace terrace::bench
