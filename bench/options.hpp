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

/// Throws std::runtime_error where a word is no option, or one without its value.
inline void read_options(int argc, char** argv, const Switches& switches, const Settings& settings) {
  const auto take = [&](int& i) {
    const std::string word = argv[i];
    for (const auto& [name, set] : switches) {
      if (word == name) return set(), true;
    }
    for (const auto& [name, set] : settings) {
      if (word == name.substr(0, name.find(' ')) && i + 1 < argc) return set(argv[++i]), true;
    }
    return false;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (take(i)) continue;
    std::string known;
    for (const auto& option : switches) known += (known.empty() ? "" : ", ") + option.first;
    for (const auto& option : settings) known += (known.empty() ? "" : ", ") + option.first;
    throw std::runtime_error("unknown option '" + word + "': there are " + known);
  }
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

}  // namespace terrace::bench
