// SPDX-License-Identifier: Apache-2.0
#include "profile/calibrate_device.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "backends/synthetic/synthetic.hpp"
#include "base/check.hpp"
#include "base/cuda_driver.hpp"
#include "mover/device_engine.hpp"
#include "profile/measurements.hpp"
#include "profile/tier_sample.hpp"
#include "terrace/mover.hpp"
#include "tiers/cuda.hpp"

namespace terrace {
namespace {

using namespace literals;
using Clock = std::chrono::steady_clock;

constexpr Bytes kBusySize = 16_MiB;  // at which links meet each other and kernels
constexpr std::uint64_t kMostAtOnce = 64;

/// Work that goes on beside the host once it is started.
struct Batch {
  std::function<void()> start, finish;
  double count = 1;  ///< of what it consists

  Seconds time() const {
    const auto begin = Clock::now();
    start();
    finish();
    return Clock::now() - begin;
  }
};

class DeviceCalibration {
 public:
  explicit DeviceCalibration(const DeviceCalibrateOptions& options) : options_(options) {}

  Result<Machine> run() {
    if (auto opened = open_all(); !opened) return opened.error();
    auto kernels = synthetic_kernels(device());
    if (!kernels) return kernels.error();
    kernels_ = *std::move(kernels);
    std::vector<Tier*> borrowed;
    for (const auto& tier : tiers_) borrowed.push_back(tier.get());
    mover_ = std::make_unique<Mover>(borrowed);
    compute_ = device().make_queue();
    measure_device();
    for (std::uint32_t i = 1; i < tiers_.size(); ++i) measure_pair({i});
    for (std::uint32_t i = 1; i < tiers_.size(); ++i) measure_others({i});
    Machine machine = assemble(measured_);
    for (MachineTier& tier : machine.tiers) {
      // Neighbours on the device are neighbours in pinned memory, and travel as one.
      if (parse_tier_spec(tier.spec)->kind == TierKind::pinned)
        tier.granularity = machine.tiers[0].granularity;
    }
    if (const auto valid = validate(machine); !valid) return valid.error();
    return machine;
  }

 private:
  Device& device() { return *tiers_[0]->device()->device; }
  /// A half for each direction of transfers; on the device, as much again for kernels beside them.
  Bytes area() const { return (tiers_.empty() ? 4 : 2) * options_.sizes.back(); }
  Bytes busy() const { return std::min(kBusySize, options_.sizes.back()); }

  void next(const std::string& what) {
    const double steps = 1 + static_cast<double>(tiers_.size() * (tiers_.size() - 1));
    options_.progress(what, std::min(1.0, done_++ / steps));
  }

  Result<void> open_all() {
    std::vector<TierSpec> specs = options_.slow;
    specs.insert(specs.begin(), options_.fast);
    for (const TierSpec& spec : specs) {
      const auto sample = sample_of(spec, area());
      if (!sample) return sample.error();
      auto tier = options_.open ? options_.open(*sample) : open_tier(*sample);
      if (!tier) return tier.error();
      measured_.tiers.push_back({spec, (*tier)->description().granularity, tiers_.empty(), {}, {}, {}});
      tiers_.push_back(*std::move(tier));
    }
    if (tiers_[0]->device() == nullptr) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} lies on no device: kernels of a device use cuda:0:SIZE first",
                               to_string(options_.fast))};
    }
    return {};
  }

  template <class Round>
  Samples rounds(Round round) const {
    Samples samples(options_.rounds);
    std::generate(samples.begin(), samples.end(), round);
    return samples;
  }

  /// So many of one thing that they take about as long as a round.
  template <class Make>
  Batch sized(Make make) const {
    const Batch one = make(1.0);
    one.time();  // the first is always slow
    const double each = std::max(one.time().count(), 1e-7);
    return make(std::clamp(std::round(options_.round.count() / each), 1.0, 100000.0));
  }

  Batch kernels(std::function<void()> launch, double count) {
    return {[launch = std::move(launch), count] {
              for (double i = 0; i < count; ++i) launch();
            },
            [this] { compute_->finish(); }, count};
  }

  Batch streaming(double count) {
    const Bytes half = options_.sizes.back();
    const DeviceAddress base = tiers_[0]->device()->address + 2 * half.count;
    return kernels(
        [this, base, half] {
          kernels_->stream(*compute_, {base, half}, base + half.count);
        },
        count);
  }

  void measure_device() {
    next("the device's memory and arithmetic");
    const DeviceAddress base = tiers_[0]->device()->address;
    const Batch stream = sized([&](double count) { return streaming(count); });
    const double bytes = 2.0 * static_cast<double>(options_.sizes.back().count) * stream.count;
    TierSamples& tier = measured_.tiers[0];
    tier.read = tier.write = rounds([&] { return bytes / stream.time().count(); });
    const Batch empty = sized(
        [&](double count) { return kernels([this] { kernels_->spin(*compute_, Seconds{0}); }, count); });
    tier.latency = rounds([&] { return empty.time().count() / empty.count; });
    double operations = 0;
    const Batch compute = sized([&](double count) {
      return kernels([&, base] { operations = kernels_->compute(*compute_, base); }, count);
    });
    const Samples rates = rounds([&] { return operations * compute.count / compute.time().count(); });
    measured_.compute = {model(), 1, median(rates)};
    measured_.source = fmt::format("measured on {:%Y-%m-%d} (UTC): medians of {} rounds on {}",
                                   fmt::gmtime(std::time(nullptr)), options_.rounds, model());
  }

  std::string model() {
    const auto number = gpu_number(device());
    const auto gpus = probe_cuda();
    return number && gpus ? gpus->gpus[*number].name : device().name();
  }

  bool by_device(TierId from, TierId to) {
    const auto reached = [&](TierId id) {
      Tier& tier = *tiers_[id.index];
      if (tier.device() != nullptr) return tier.device()->device->name() == device().name();
      return tier.memory() != nullptr && device().reaches({tier.memory(), tier.description().capacity.count});
    };
    return (from.index == 0 || to.index == 0) && reached(from) && reached(to);
  }

  /// Transfers of one size that walk through a part of both tiers.
  Batch transfers(TierId from, TierId to, Bytes size, std::uint64_t begin, double count) {
    const auto place = [this, size, begin](double i) {
      const auto places = std::max<std::uint64_t>(1, options_.sizes.back().count / size.count);
      return begin + static_cast<std::uint64_t>(i) % std::min(places, kMostAtOnce) * size.count;
    };
    if (by_device(from, to)) {
      const std::shared_ptr<DeviceQueue> queue = device().make_queue();
      Tier* const source = tiers_[from.index].get();
      Tier* const target = tiers_[to.index].get();
      const Direction direction = direction_between(*source, *target);
      return {[=] {
                for (double i = 0; i < count; ++i)
                  issue_copy(*queue, direction,
                             {address_in(*source, place(i)), address_in(*target, place(i)), size.count});
              },
              [queue] { queue->finish(); }, count};
    }
    const auto under_way = std::make_shared<std::vector<Transfer>>();
    return {[=, this] {
              for (double i = 0; i < count; ++i)
                under_way->push_back(mover_->start({{{from, place(i), size}, {to, place(i), size}}}));
            },
            [under_way] {
              for (Transfer& transfer : *under_way) transfer.wait();
              under_way->clear();
            },
            count};
  }
  Batch sized_transfers(TierId from, TierId to, Bytes size, std::uint64_t begin) {
    return sized([&](double count) { return transfers(from, to, size, begin, count); });
  }

  void measure_pair(TierId other) {
    measured_.links.push_back(measure_link({0}, other));
    measured_.links.push_back(measure_link(other, {0}));
    TierSamples& tier = measured_.tiers[other.index];
    const Batch least = transfers(other, {0}, tier.granularity, 0, 1);
    tier.latency = rounds([&] { return least.time().count(); });
  }
  /// Among slower tiers: what hops from tier to tier uses.
  void measure_others(TierId from) {
    for (std::uint32_t to = 1; to < tiers_.size(); ++to) {
      if (to != from.index) measured_.links.push_back(measure_link(from, {to}));
    }
  }

  LinkSamples measure_link(TierId from, TierId to) {
    next(fmt::format("{} > {}", to_string(measured_.tiers[from.index].spec.kind),
                     to_string(measured_.tiers[to.index].spec.kind)));
    LinkSamples samples{from, to, {}, {}, {}, {}, 1};
    for (const Bytes size : options_.sizes) {
      const Batch batch = sized_transfers(from, to, size, 0);
      samples.times.push_back({size, rounds([&] { return batch.time().count() / batch.count; })});
    }
    const Batch there = sized_transfers(from, to, busy(), 0);
    const Batch back = transfers(to, from, busy(), options_.sizes.back().count, 2 * there.count);
    const Batch stream = sized([&](double count) { return streaming(count); });
    for (unsigned round = 0; round < options_.rounds; ++round) {
      const Seconds alone = there.time();
      samples.both_ways.push_back(alone / beside(there, back).first);
      measure_beside_kernels(samples, there, stream, alone);
    }
    return samples;
  }

  struct Both {
    Seconds first{0}, second{0};
  };
  /// Returns how long the first takes while the second goes on, and the second in all.
  static Both beside(const Batch& first, const Batch& second) {
    const auto begin = Clock::now();
    second.start();
    const auto started = Clock::now();
    first.start();
    first.finish();
    const Seconds of_first = Clock::now() - started;
    second.finish();
    return {of_first, Clock::now() - begin};
  }

  /// Kernels that go on for longer than the transfers lose what those make them wait.
  void measure_beside_kernels(LinkSamples& samples, const Batch& there, const Batch& stream, Seconds alone) {
    const Batch longer = streaming(2 * stream.count);
    const Seconds kernels_alone = longer.time();
    const Both both = beside(there, longer);
    const Seconds busy = std::min(both.first, both.second);
    samples.compute.push_back(1 - std::clamp((both.second - kernels_alone) / busy, 0.0, 1.0));
    samples.while_computing.push_back(alone / both.first);
  }

  const DeviceCalibrateOptions& options_;
  std::vector<std::unique_ptr<Tier>> tiers_;
  std::unique_ptr<SyntheticKernels> kernels_;
  std::unique_ptr<DeviceQueue> compute_;
  std::unique_ptr<Mover> mover_;
  Measurements measured_;
  double done_ = 0;
};

}  // namespace

Result<Machine> calibrate_device(const DeviceCalibrateOptions& options) {
  check(options.rounds > 0 && !options.sizes.empty(), "there is a round, and a size");
  return DeviceCalibration(options).run();
}

}  // namespace terrace
