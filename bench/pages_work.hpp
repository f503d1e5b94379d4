// SPDX-License-Identifier: Apache-2.0
// The workloads of the `pages` claim: a program that knows nothing of Terrace. It allocates memory, uses it,
// checks what it reads and prints one line of JSON. The same program runs under every contender.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"

namespace terrace::bench {

using PagesClock = std::chrono::steady_clock;
inline double seconds_since(PagesClock::time_point began) {
  return std::chrono::duration<double>(PagesClock::now() - began).count();
}

/// Draws ranks by Zipf's law (Gray et al., "Quickly generating billion-record synthetic databases", 1994).
class Zipf {
 public:
  Zipf(std::uint64_t count, double skew) : count_(count), skew_(skew) {
    for (std::uint64_t i = 1; i <= count; ++i) zeta_ += 1 / std::pow(static_cast<double>(i), skew);
    const double two = 1 + std::pow(0.5, skew);
    alpha_ = 1 / (1 - skew);
    eta_ = (1 - std::pow(2.0 / static_cast<double>(count), 1 - skew)) / (1 - two / zeta_);
  }
  std::uint64_t draw(SplitMix& random) const {
    const double u = static_cast<double>(random.next() >> 11) * 0x1p-53, uz = u * zeta_;
    if (uz < 1) return 0;
    if (uz < 1 + std::pow(0.5, skew_)) return 1;
    const double rank = static_cast<double>(count_) * std::pow(eta_ * u - eta_ + 1, alpha_);
    return std::min(static_cast<std::uint64_t>(rank), count_ - 1);
  }

 private:
  std::uint64_t count_;
  double skew_, zeta_ = 0, alpha_ = 0, eta_ = 0;
};

class PagesWork {
 public:
  static constexpr std::size_t kPageWords = 512;

  explicit PagesWork(std::size_t bytes) : pages_(bytes / 4096) {
    void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::runtime_error("no memory");
    words_ = static_cast<std::uint64_t*>(start);
    const auto began = PagesClock::now();
    for (std::size_t i = 0; i < pages_ * kPageWords; ++i) words_[i] = i + 1;
    fill_seconds_ = seconds_since(began);
  }

  /// Reads of pages by Zipf's law, scattered over the memory, for so long by each thread.
  void zipf(double seconds, unsigned threads) {
    const Zipf law(pages_, 0.99);
    std::vector<std::uint64_t> done(threads);
    std::vector<std::thread> team;
    const auto began = PagesClock::now();
    for (unsigned i = 0; i < threads; ++i) {
      team.emplace_back([&, i] {
        SplitMix random(i + 1);
        while (done[i] % 64 != 0 || seconds_since(began) < seconds) {
          read(law.draw(random) * 2654435761U % pages_, random.below(kPageWords));
          ++done[i];
        }
      });
    }
    for (std::thread& thread : team) thread.join();
    std::uint64_t all = 0;
    for (const std::uint64_t count : done) all += count;
    print("per_second", static_cast<double>(all) / seconds_since(began));
  }

  /// Everything in order: read, then written.
  void sweep() {
    auto began = PagesClock::now();
    for (std::size_t i = 0; i < pages_ * kPageWords; i += 8) read(i / kPageWords, i % kPageWords);
    const double reading = seconds_since(began);
    began = PagesClock::now();
    for (std::size_t i = 0; i < pages_ * kPageWords; i += 8) words_[i] = i + 1;
    const double writing = seconds_since(began);
    std::printf(
        "{\"fill_seconds\": %.4f, \"read_seconds\": %.4f, \"write_seconds\": %.4f, \"seconds\": %.4f}\n",
        fill_seconds_, reading, writing, reading + writing);
  }

  /// Single touches of parts far apart: how long those took that were not in memory.
  void fault(int touches) {
    SplitMix random(9);
    std::vector<double> took;
    for (int i = 0; i < touches; ++i) {
      const std::size_t page = random.below(pages_);
      const auto began = PagesClock::now();
      read(page, 7);
      const double us = seconds_since(began) * 1e6;
      if (us > 20) took.push_back(us);
    }
    std::sort(took.begin(), took.end());
    const auto at = [&](double share) {
      return took.empty() ? 0 : took[static_cast<std::size_t>(share * static_cast<double>(took.size() - 1))];
    };
    std::printf("{\"fill_seconds\": %.4f, \"faults\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
                fill_seconds_, took.size(), at(0.5), at(0.99));
  }

 private:
  void read(std::size_t page, std::size_t word) const {
    const std::size_t i = page * kPageWords + word;
    if (static_cast<const volatile std::uint64_t*>(words_)[i] != i + 1)
      throw std::runtime_error("wrong bytes");
  }
  void print(const char* what, double value) const {
    std::printf("{\"fill_seconds\": %.4f, \"%s\": %.1f}\n", fill_seconds_, what, value);
  }

  std::size_t pages_;
  std::uint64_t* words_ = nullptr;
  double fill_seconds_ = 0;
};

/// `work NAME BYTES AMOUNT [THREADS]`
inline void do_pages_work(int argc, char** argv) {
  if (argc < 5) throw std::runtime_error("work takes a name, bytes and an amount");
  const std::string name = argv[2];
  PagesWork work(std::stoull(argv[3]));
  if (name == "zipf")
    return work.zipf(std::stod(argv[4]), argc > 5 ? static_cast<unsigned>(std::stoul(argv[5])) : 1);
  if (name == "sweep") return work.sweep();
  if (name == "fault") return work.fault(std::stoi(argv[4]));
  throw std::runtime_error("there is no work '" + name + "'");
}

}  // namespace terrace::bench
