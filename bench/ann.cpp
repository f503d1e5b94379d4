// SPDX-License-Identifier: Apache-2.0
// Claim: an index of vectors answers at least 1.1 times as many queries as hnswlib in memory, and with its
// lowest layer on a disk, in half of that memory, within 0.6 ms.
//
//   bench/run ann [--quick] [--only memory|disk|sift|optane|promotion|emulated|cost|large|paper|lane]
//                 [--folder FOLDER] [--count N] [--data KIND] [--links M] [--ef-construction EF] [--build]
//                 [--seconds S]
//
// With --build, `disk` and `sift` build what they need and time nothing. FOLDER keeps data, exact neighbours
// and the rivals' indexes for the next run; N is the number of vectors of `large`, `promotion` and `sift`;
// KIND is the one data of `optane` and `promotion`, and M the links of the latter and of `large`, which is
// built with EF candidates. Its builder is killed when S seconds have passed, and the next run goes on.
#include "ann_cost.hpp"
#include "ann_disk.hpp"
#include "ann_lane.hpp"
#include "ann_large.hpp"
#include "ann_optane.hpp"
#include "ann_paper.hpp"

namespace {

using namespace terrace::bench;

struct Request {
  bool quick = false;
  std::string only;
  std::filesystem::path folder = "/var/tmp/terrace-bench-ann";
  std::size_t count = 0;
  std::string data;
  std::uint32_t links = 16;
  std::uint32_t ef_construction = 100;
  double seconds = 1e9;
  Stage stage = Stage::contest;
};

nlohmann::json run_row(const std::string& row, const Request& request) {
  if (row == "memory") return run_memory(request.folder, request.quick);
  if (row == "disk") return run_disk(request.folder, request.quick, request.stage);
  if (row == "sift") return run_sift(request.folder, request.quick, request.count, request.stage);
  if (row == "optane") return run_optane(request.folder, request.quick, request.data);
  if (row == "promotion") {
    const std::size_t count = request.count > 0 ? request.count : request.quick ? 20'000 : 100'000;
    return run_promotion(request.folder, count, request.data, request.links);
  }
  if (row == "emulated") return run_emulated(request.folder, request.quick);
  if (row == "lane") return run_lane(request.folder, request.quick);
  if (row == "paper") return run_paper(request.folder, request.quick);
  if (row == "cost") return run_cost(request.folder, request.quick);
  if (row == "large")
    return run_large(request.folder, request.quick, request.count, request.seconds,
                     {request.links, request.ef_construction});
  throw std::runtime_error(
      "there is no row '" + row +
      "': choose memory, disk, sift, optane, promotion, emulated, cost, large, paper or lane");
}

void run(const Request& request) {
  std::filesystem::create_directories(request.folder);
  // What needs hours or packages of pictures is run by its name.
  const std::vector<std::string> rows = request.only.empty()
                                            ? std::vector<std::string>{"memory", "disk", "optane", "cost"}
                                            : std::vector<std::string>{request.only};
  nlohmann::json details;
  for (const std::string& row : rows) details[row] = run_row(row, request);
  double ratio = 0;
  nlohmann::json spread;
  if (details.contains("memory")) {
    const auto& first = details["memory"][0]["searches"][0];
    ratio = first["ratio"], spread = first["spread"];
  }
  print_result(
      "an index of vectors answers more queries than hnswlib in memory, and within 0.6 ms on a disk",
      "memory: ratio >= 1.1 and build_ratio >= 1; disk: mean_ms <= 0.6 and 0.8 in 50 and 30%, over >= 10 "
      "(swap) and "
      "3 (mapped); sift: mean_ms <= 1, over >= 1.5; optane: over 1.5, 2.5, 1.5; cost: median_error <= 0.25",
      ratio, spread, details);
}

Request parse(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) throw std::runtime_error(word + " needs a value");
      return argv[i];
    };
    if (word == "--quick")
      request.quick = true;
    else if (word == "--build")
      request.stage = Stage::build;
    else if (word == "--only")
      request.only = value();
    else if (word == "--folder")
      request.folder = value();
    else if (word == "--count")
      request.count = std::stoul(value());
    else if (word == "--data")
      request.data = value();
    else if (word == "--seconds")
      request.seconds = std::stod(value());
    else if (word == "--ef-construction")
      request.ef_construction = static_cast<std::uint32_t>(std::stoul(value()));
    else if (word == "--links")
      request.links = static_cast<std::uint32_t>(std::stoul(value()));
    else
      throw std::runtime_error(
          "unknown option '" + word +
          "': there are --quick, --build, --only, --folder, --count, --data, --links, --ef-construction and "
          "--seconds");
  }
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
    if (argc > 1 && std::string(argv[1]) == "--contend") return contend(words);
    if (argc > 1 && std::string(argv[1]) == "--build-large") return build_large(words);
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
