// Claim: a hint and a pin on a resident object cost at most 100 ns; a background transfer starts within 20
// us.
#include <fmt/format.h>

#include <chrono>

#include "report.hpp"
#include "terrace/manager.hpp"

namespace {

using namespace terrace;
using namespace terrace::literals;
using Timer = std::chrono::steady_clock;

double nanoseconds(Timer::duration time) { return std::chrono::duration<double, std::nano>(time).count(); }

// Returns the nanoseconds of one call of `action`, one value for each batch.
template <class Action>
std::vector<double> batches(int count, Action action) {
  constexpr int kBatch = 2000;
  std::vector<double> costs;
  for (int batch = 0; batch < count; ++batch) {
    const Timer::time_point began = Timer::now();
    for (int i = 0; i < kBatch; ++i) action(i);
    costs.push_back(nanoseconds(Timer::now() - began) / kBatch);
  }
  costs.erase(costs.begin());  // the first batch warms up
  return costs;
}

struct Cost {
  std::vector<double> hint, pin;
};

Cost resident_costs(std::string_view policy, int count) {
  Manager manager({"dram:64MiB", "dram:64MiB"}, policy);
  std::vector<ObjectId> objects;
  for (int i = 0; i < 256; ++i) objects.push_back(manager.create(64_KiB).value());
  const auto object = [&](int i) { return objects[static_cast<std::size_t>(i) % objects.size()]; };
  Cost cost;
  cost.hint = batches(count, [&](int i) { manager.will_read(object(i)); });
  std::uint64_t check = 0;
  cost.pin = batches(count, [&](int i) { check += manager.pin(object(i), Access::read)->size().count; });
  if (check == 0 || manager.statistics().copies != 0)
    throw std::runtime_error("the objects were not resident");
  return cost;
}

// Returns the microseconds until start() returns for a transfer that takes milliseconds.
std::vector<double> start_costs(std::string_view slow, int count) {
  auto fast_tier = open_tier("dram:64MiB").value();
  auto slow_tier = open_tier(slow).value();
  Mover mover({fast_tier.get(), slow_tier.get()});
  std::vector<double> costs;
  for (int i = 0; i < count; ++i) {
    const Timer::time_point began = Timer::now();
    Transfer transfer = mover.start({Move{{TierId{0}, 0, 32_MiB}, {TierId{1}, 0, 32_MiB}}});
    costs.push_back(nanoseconds(Timer::now() - began) / 1e3);
    transfer.wait();
  }
  costs.erase(costs.begin());
  return costs;
}

nlohmann::json summary(const std::vector<double>& costs) {
  return {{"median", bench::median(costs)},
          {"p95", bench::quantile(costs, 0.95)},
          {"spread", bench::spread(costs)}};
}

// Returns the microseconds until a hint that starts a background prefetch returns.
std::vector<double> hint_costs(int count) {
  Manager manager({"dram:16MiB", "dram:128MiB"}, "async-LMP");
  std::vector<ObjectId> objects;
  for (int i = 0; i < 32; ++i) {
    objects.push_back(manager.create(2_MiB).value());
    manager.archive(objects.back());
  }
  std::vector<double> costs;
  for (int i = 0; i < count; ++i) {
    const ObjectId object = objects[static_cast<std::size_t>(i) % objects.size()];
    manager.settle();
    const std::uint64_t before = manager.statistics().copies;
    const Timer::time_point began = Timer::now();
    manager.will_read(object);
    const double cost = nanoseconds(Timer::now() - began) / 1e3;
    if (manager.statistics().copies > before) costs.push_back(cost);
    manager.archive(object);
  }
  return costs;
}

void report_start(const std::string& what, const std::vector<double>& costs, nlohmann::json& details) {
  fmt::print("{}: median {:.1f} us, p95 {:.1f} us\n", what, bench::median(costs),
             bench::quantile(costs, 0.95));
  details["start_us"][what] = summary(costs);
}

void run(bool quick) {
  nlohmann::json details;
  double worst = 0;
  std::vector<double> worst_ratios;
  for (const std::string_view policy : policy_names()) {
    const Cost cost = resident_costs(policy, quick ? 200 : 1000);
    const double sum = bench::median(cost.hint) + bench::median(cost.pin);
    fmt::print("{:12} hint {:5.1f} ns, pin and release {:5.1f} ns\n", policy, bench::median(cost.hint),
               bench::median(cost.pin));
    details["hint_ns"][std::string(policy)] = summary(cost.hint);
    details["pin_ns"][std::string(policy)] = summary(cost.pin);
    if (sum < worst) continue;
    worst = sum;
    worst_ratios.clear();
    for (std::size_t i = 0; i < cost.hint.size(); ++i)
      worst_ratios.push_back(100 / (cost.hint[i] + cost.pin[i]));
  }
  const int starts = quick ? 100 : 400;
  report_start("transfer to memory", start_costs("dram:64MiB", starts), details);
  report_start("transfer to a disk", start_costs("file:bench-manager.spill:64MiB", starts), details);
  report_start("hint that starts a prefetch", hint_costs(starts), details);
  bench::print_result(
      "a hint and a pin on a resident object cost at most 100 ns together; a background transfer starts "
      "within 20 us",
      "ratio >= 1 (100 ns over hint plus pin, the slowest policy); start_us medians <= 20", 100 / worst,
      bench::spread(worst_ratios), details);
}

}  // namespace

int main(int argc, char** argv) { return bench::guarded_main(argc, argv, run); }
