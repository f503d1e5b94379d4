// SPDX-License-Identifier: Apache-2.0
// Options of a benchmark: words that switch something on, and words that a value follows.
//
//   read_options(argc, argv, {{"--quick", [&] { quick = true; }}},
//                {{"--only PART", [&](const std::string& value) { only = value; }}});
//
// A value's name follows its option's, for the sentence that refuses an unknown word.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace terrace::bench {

using Switches = std::vector<std::pair<std::string, std::function<void()>>>;
using Settings = std::vector<std::pair<std::string, std::function<void(const std::string&)>>>;

/// Reads a benchmark's words. One that is no option goes to `other`, where there is one, which returns
/// whether it takes it. Throws std::runtime_error where nobody takes a word, or an option lacks its value.
inline void read_options(const std::vector<std::string>& words, const Switches& switches,
                         const Settings& settings,
                         const std::function<bool(const std::string&)>& other = {}) {
  const auto take = [&](std::size_t& i) {
    for (const auto& [name, set] : switches) {
      if (words[i] == name) return set(), true;
    }
    for (const auto& [name, set] : settings) {
      if (words[i] == name.substr(0, name.find(' ')) && i + 1 < words.size()) return set(words[++i]), true;
    }
    return other && !words[i].starts_with("-") && other(words[i]);
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    if (take(i)) continue;
    std::string known;
    for (const auto& option : switches) known += (known.empty() ? "" : ", ") + option.first;
    for (const auto& option : settings) known += (known.empty() ? "" : ", ") + option.first;
    throw std::runtime_error("unknown option '" + word + "': there are " + known);
  }
}
inline void read_options(int argc, char** argv, const Switches& switches, const Settings& settings) {
  read_options({argv + 1, argv + argc}, switches, settings);
}

/// What benchmarks of a paper's figures are asked for. An empty name means all of them.
struct PaperRequest {
  bool quick = false;
  std::string only, network;

  bool asks_for(const std::string& part) const { return only.empty() || only == part; }
  bool asks_for_network(const std::string& name) const { return network.empty() || network == name; }
};

/// Reads --quick, --only and --network, and what else the benchmark has.
inline void read_options(int argc, char** argv, PaperRequest& request, const Settings& more = {}) {
  Settings settings{{"--only PART", [&](const std::string& part) { request.only = part; }},
                    {"--network NAME", [&](const std::string& name) { request.network = name; }}};
  settings.insert(settings.end(), more.begin(), more.end());
  read_options(argc, argv, {{"--quick", [&] { request.quick = true; }}}, settings);
}

/// Runs a benchmark. An exception is printed as one sentence and fails the program.
template <class Run>
int guarded(char** argv, Run run) {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

/// Runs a benchmark of a paper's figures that has no other options.
template <class Run>
int paper_main(int argc, char** argv, Run run) {
  return guarded(argv, [&] {
    PaperRequest request;
    read_options(argc, argv, request);
    run(request);
  });
}

}  // namespace terrace::bench
