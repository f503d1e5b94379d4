#include "pipeline/measuring.hpp"

#include "terrace/error.hpp"

namespace terrace {

MeasureOptions measure_within(const Machine& machine, std::vector<Bytes> budget) {
  MeasureOptions options;
  for (std::size_t i = 0; i < budget.size(); ++i) {
    if (machine.tiers[i].addressable) options.budget += budget[i];
  }
  options.tier_budgets = std::move(budget);
  return options;
}

std::optional<ProfileStore> open_profile_store(const std::filesystem::path& file,
                                               const ProgressSink& progress) try {
  auto store = ProfileStore::open(file);
  if (!store) return progress(store.error().message), std::nullopt;
  if (!store->note().empty()) progress(store->note());
  return *std::move(store);
} catch (const EnvironmentError& error) {
  return progress(error.what()), std::nullopt;
}

}  // namespace terrace
