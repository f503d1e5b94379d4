// SPDX-License-Identifier: Apache-2.0
// Rows of the `pages` claim that are measured inside one process: what the disk itself gives, how long a
// fault takes that reads so much, and whether a known hot set is found.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "pages/file_store.hpp"
#include "pages/service.hpp"
#include "pages_work.hpp"
#include "tiers/mapping.hpp"

namespace terrace::bench {

/// Gigabytes a second of direct requests of 2 MiB, one at a time and `depth` at a time.
inline nlohmann::json disk_rates(const std::filesystem::path& folder) {
  using pages::kChunk;
  const std::size_t chunks = 512;
  auto store = pages::open_file_store({"bench", folder, Bytes{2 * chunks * kChunk}, false}).value();
  const Mapping buffers = map_anonymous(Bytes{4 * kChunk}, "buffers");
  std::fill_n(buffers.data(), buffers.size(), std::byte{5});
  const auto sweep = [&](unsigned depth, bool write) {
    std::vector<std::thread> team;
    const auto began = PagesClock::now();
    for (unsigned i = 0; i < depth; ++i) {
      team.emplace_back([&, i] {
        std::byte* const buffer = buffers.data() + i * kChunk;
        for (std::size_t chunk = i; chunk < chunks; chunk += depth) {
          const iovec piece{buffer, kChunk};
          if (write ? store->write(chunk * kChunk, {&piece, 1}) : store->read(chunk * kChunk, buffer, kChunk))
            throw std::runtime_error("the disk fails");
        }
      });
    }
    for (std::thread& thread : team) thread.join();
    return static_cast<double>(chunks * kChunk) / seconds_since(began) / 1e9;
  };
  sweep(1, true);  // space is reserved by the first one
  return {{"write_1", sweep(1, true)},
          {"read_1", sweep(1, false)},
          {"write_4", sweep(4, true)},
          {"read_4", sweep(4, false)}};
}

/// Memory that a service of this process manages.
class Managed {
 public:
  Managed(const std::filesystem::path& folder, Bytes data, Bytes fast, pages::Bringing bringing,
          double interval)
      : memory_(map_anonymous(data, "a benchmark's memory")) {
    std::vector<std::unique_ptr<pages::Store>> stores;
    stores.push_back(pages::open_file_store({"bench", folder, data + data, false}).value());
    pages::ServiceOptions options;
    options.fast_bytes = fast.count;
    options.most_bytes = data.count;
    options.bringing = bringing;
    options.interval_seconds = interval;
    service_ = pages::Service::start(std::move(stores), options).value();
    if (service_->manage(reinterpret_cast<pages::Address>(memory_.data()), memory_.size()) != 0)
      throw std::runtime_error("the memory is refused");
    for (std::size_t i = 0; i < memory_.size(); i += 64) memory_.data()[i] = std::byte{1};
  }
  std::byte* data() const { return memory_.data(); }
  std::size_t size() const { return memory_.size(); }
  pages::Service& service() const { return *service_; }

 private:
  Mapping memory_;
  std::unique_ptr<pages::Service> service_;
};

/// Touches places far apart, each written one in eight times so that evictions have to write, and takes the
/// time of those that had to be fetched.
inline nlohmann::json fault_times(const std::filesystem::path& folder, Bytes data, Bytes fast,
                                  pages::Bringing bringing, int touches) {
  const Managed managed(folder, data, fast, bringing, 1);
  SplitMix random(4);
  std::vector<double> took;
  for (int i = 0; i < touches; ++i) {
    const std::size_t at = random.below(managed.size() / 4096) * 4096;
    const std::uint64_t before = managed.service().statistics().counts.fetch_faults;
    const auto began = PagesClock::now();
    [[maybe_unused]] volatile std::byte touched = managed.data()[at];
    const double us = seconds_since(began) * 1e6;
    if (managed.service().statistics().counts.fetch_faults > before) took.push_back(us);
    if (i % 8 == 0) managed.data()[at] = std::byte{2};
  }
  std::sort(took.begin(), took.end());
  const auto at = [&](double share) {
    return took.empty() ? 0 : took[static_cast<std::size_t>(share * static_cast<double>(took.size() - 1))];
  };
  return {{"faults", took.size()}, {"p50_us", at(0.5)}, {"p99_us", at(0.99)}};
}

/// Updates of random places, nine of ten in a known fifth of the memory; what the sampler says of every part
/// after so many intervals.
inline nlohmann::json hot_set(const std::filesystem::path& folder, Bytes data, Bytes fast, int intervals) {
  const Managed managed(folder, data, fast, pages::Bringing::learned, 1);
  const std::size_t parts = managed.size() / pages::kPart;
  std::vector<std::size_t> hot;
  std::vector<bool> is_hot(parts);
  SplitMix random(5);
  while (hot.size() < parts / 5) {
    const std::size_t length = 20 + random.below(200), first = random.below(parts - length);
    for (std::size_t part = first; part < first + length; ++part) {
      if (!is_hot[part]) hot.push_back(part);
      is_hot[part] = true;
    }
  }
  nlohmann::json over_time = nlohmann::json::array();
  std::uint64_t seen = 0, updates = 0;
  const auto began = PagesClock::now();
  while (managed.service().statistics().intervals < static_cast<std::uint64_t>(intervals)) {
    for (int i = 0; i < 2000; ++i) {
      const std::size_t part = random.below(10) < 9 ? hot[random.below(hot.size())] : random.below(parts);
      std::byte& place = managed.data()[part * pages::kPart + random.below(pages::kPart)];
      place ^= std::byte{1};
      ++updates;
    }
    const std::uint64_t now = managed.service().statistics().intervals;
    if (now == seen) continue;
    seen = now;
    double said = 0, right = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const bool says = managed.service().hotness(reinterpret_cast<pages::Address>(managed.data()) +
                                                  part * pages::kPart) > 0.5;
      said += says;
      right += says && is_hot[part];
    }
    over_time.push_back({{"interval", now},
                         {"recall", right / static_cast<double>(hot.size())},
                         {"precision", said > 0 ? right / said : 0}});
  }
  const auto statistics = managed.service().statistics();
  return {{"over_time", over_time},
          {"updates_per_second", static_cast<double>(updates) / seconds_since(began)},
          {"largest_overhead", statistics.largest_overhead},
          {"samples", statistics.samples},
          {"stretches", statistics.stretches}};
}

}  // namespace terrace::bench
