// A trainer measures a graph that it meets in the middle of training, in the memory that it has.
#include <fmt/format.h>

#include <exception>
#include <functional>
#include <optional>

#include "pipeline/measuring.hpp"
#include "train/trainer_state.hpp"

namespace terrace {
namespace {

namespace fs = std::filesystem;

/// A stretch of a tier that is open already, as a tier of its own.
class LentMemory final : public Tier {
 public:
  LentMemory(TierDescription description, std::span<std::byte> memory)
      : description_(std::move(description)), memory_(memory) {
    description_.capacity = Bytes{memory.size()};
  }
  const TierDescription& description() const noexcept override { return description_; }
  std::byte* memory() noexcept override { return memory_.data(); }

 private:
  TierDescription description_;
  const std::span<std::byte> memory_;
};

Result<void> require_tiers(const OpenTiers& tiers, const Machine& machine) {
  if (machine.tiers.size() != tiers.count()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("machine {} has {} tiers and training has {}: measure for the machine that it "
                             "was started on",
                             machine.name, machine.tiers.size(), tiers.count())};
  }
  for (std::uint32_t i = 0; i < tiers.count(); ++i) {
    if (!tiers.is_open({i}) || machine.tiers[i].addressable == (tiers[{i}].memory() != nullptr)) continue;
    return Error{ErrorCode::invalid_argument,
                 fmt::format("machine {} says that kernels {} use {} and training has {} there: measure for "
                             "the machine that it was started on",
                             machine.name, machine.tiers[i].addressable ? "can" : "cannot",
                             machine.tiers[i].name, tiers[{i}].description().name)};
  }
  return {};
}

/// Lends the memory of tiers between two steps: what nothing lies in, and where that is too small all of it.
class Lender {
 public:
  /// `clear` makes all memory of the tiers free.
  Lender(const OpenTiers& tiers, const Store& store, std::function<Result<void>()> clear)
      : tiers_(tiers), store_(store), clear_(std::move(clear)) {}

  Result<std::unique_ptr<Tier>> lend(TierId id, Bytes bytes) {
    std::span<std::byte> memory = store_.spare(id);
    if (!is_clear_ && memory.size() < bytes.count) {
      if (refused_) return *refused_;
      if (const auto cleared = clear_(); !cleared) return *(refused_ = cleared.error());
      is_clear_ = true;
    }
    Tier& tier = tiers_[id];
    if (is_clear_) memory = {tier.memory(), tier.description().capacity.count};
    TierDescription description = tier.description();
    // Times in the fastest tier are kept for other runs: they are the kernel's own.
    if (id.index == 0) description.read_rate = description.write_rate = {}, description.latency = {};
    return std::unique_ptr<Tier>(
        std::make_unique<LentMemory>(std::move(description), memory.first(bytes.count)));
  }
  bool is_clear() const { return is_clear_; }
  /// Why the memory could not be made free; nothing where it was.
  const std::optional<Error>& refused() const { return refused_; }

 private:
  const OpenTiers& tiers_;
  const Store& store_;
  const std::function<Result<void>()> clear_;
  bool is_clear_ = false;
  std::optional<Error> refused_;
};

}  // namespace

std::vector<Bytes> Trainer::budget() const {
  std::vector<Bytes> budget;
  for (std::uint32_t i = 0; i < state_->tiers.count(); ++i) {
    const bool open = state_->tiers.is_open({i});
    budget.push_back(open ? state_->tiers[{i}].description().capacity : Bytes{0});
  }
  return budget;
}

Result<Profile> Trainer::measure(const Program& program, const Machine& machine, const fs::path& folder) {
  state_->require_sound();
  if (const auto fits = require_threads(state_->now().program, program); !fits) return fits.error();
  if (const auto fits = require_tiers(state_->tiers, machine); !fits) return fits.error();
  if (const auto before = finish_checkpoint(); !before) return before.error();
  const fs::path file = state_file(folder);
  Lender lender(state_->tiers, *state_->now().store, [&]() -> Result<void> {
    if (const auto saved = save_checkpoint(file); !saved) return saved;
    state_->fail("its memory was lent to measure another graph", {});
    return {};
  });
  auto store = open_profile_store(folder / "profiles.sqlite");
  MeasureOptions options = measure_within(machine, budget());
  options.threads = program.threads;
  options.backend = program.backend.get();
  options.store = store ? &*store : nullptr;
  options.lend = [&](TierId id, Bytes bytes) { return lender.lend(id, bytes); };
  std::optional<Result<Profile>> profile;
  std::exception_ptr broken;
  try {
    profile = terrace::measure(program.graph, machine, options);
  } catch (...) {
    broken = std::current_exception();
  }
  if (lender.is_clear()) take_back(*this, file);  // whatever happened
  if (broken) std::rethrow_exception(broken);
  if (lender.refused()) return *lender.refused();
  return *std::move(profile);
}

}  // namespace terrace
