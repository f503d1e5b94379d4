// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/random.hpp"
#include "planners/baselines/swap_schedule.hpp"
#include "planners/baselines/swapping.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

constexpr std::size_t kPopulation = 12;
constexpr std::uint32_t kGenerations = 12;
constexpr std::size_t kLargeGraph = 2000;  ///< kernels; a larger one gets fewer generations
constexpr std::uint8_t kFarthest = 16;     ///< the largest lag and lead, in kernels

/// An individual has one gene for each absence.
struct Gene {
  bool out = false;
  std::uint8_t lag = 0;   ///< kernels that run before the tensor has to be gone
  std::uint8_t lead = 1;  ///< kernels that run after its transfer back starts
};

struct Individual {
  std::vector<Gene> genes;
  double cost = 0;
};

class Search {
 public:
  Search(const PlanRequest& request, const StepUses& uses, Bytes capacity)
      : request_(request),
        uses_(uses),
        capacity_(static_cast<std::int64_t>(capacity.count)),
        clock_(request.graph, request.machine, request.profile),
        absences_(absences(request, uses)),
        all_(bytes_if_all_stay(request, uses)),
        random_(request.seed) {}

  Result<Draft> run(std::uint32_t generations) {
    Individual start{std::vector<Gene>(absences_.size()), 0};
    if (!repair(start)) return Error{ErrorCode::too_large, "what can leave is too little"};
    if (auto cost = evaluate(start); !cost) return cost.error();
    population_.assign(1, start);
    while (generations > 0 && population_.size() < kPopulation)
      population_.push_back(viable(mutated(start, 8)));
    for (std::uint32_t i = 0; i < generations; ++i) breed();
    return write_movements(request_, uses_, movements(best()), "swapadvisor");
  }

 private:
  std::vector<Movement> movements(const Individual& individual) const {
    std::vector<Movement> found;
    for (std::size_t i = 0; i < absences_.size(); ++i) {
      const Gene& gene = individual.genes[i];
      if (!gene.out) continue;
      for (const Stretch& stretch : absences_[i].out) {
        Movement moves = on_demand(absences_[i], stretch);
        if (stretch.needed) {
          moves.gone = std::min(moves.leave + (stretch.after == kNever ? 0 : gene.lag), stretch.until);
          const std::uint32_t back = stretch.until - std::min<std::uint32_t>(gene.lead, stretch.until);
          moves.back = stretch.until == uses_.kernels() ? stretch.until : std::max(back, moves.gone);
        }
        found.push_back(moves);
      }
    }
    return found;
  }

  /// Changes genes until the movements fit the capacity: at the fullest kernel, the tensor with the farthest
  /// next use leaves, or where it leaves already, it leaves at once and comes back at the last moment.
  /// Returns whether the individual fits.
  bool repair(Individual& individual) const {
    for (;;) {
      const auto bytes = bytes_left(request_, all_, movements(individual));
      const auto fullest = std::max_element(bytes.begin(), bytes.end());
      if (*fullest <= capacity_) return true;
      const auto kernel = static_cast<std::uint32_t>(fullest - bytes.begin());
      std::size_t best = absences_.size();
      std::uint32_t farthest = 0;
      for (std::size_t i = 0; i < absences_.size(); ++i) {
        const std::uint32_t next = next_use(absences_[i], kernel);
        if (next == kNever || next < farthest || is_out(individual.genes[i])) continue;
        best = i;
        farthest = next;
      }
      if (best == absences_.size()) return false;
      individual.genes[best] = {true, 0, 0};
    }
  }

  static bool is_out(const Gene& gene) { return gene.out && gene.lag == 0 && gene.lead == 0; }

  /// Returns the use after the stretch that the kernel lies in, or kNever where it lies in none.
  std::uint32_t next_use(const Absence& absence, std::uint32_t kernel) const {
    for (const Stretch& stretch : absence.out) {
      const bool ends = stretch.until == uses_.kernels();
      if (stretch.after + 1 <= kernel && (kernel < stretch.until || ends)) return stretch.until;
    }
    return kNever;
  }

  Result<void> evaluate(Individual& individual) const {
    const auto draft = write_movements(request_, uses_, movements(individual), "swapadvisor", {0});
    if (!draft) return draft.error();
    individual.cost = simulate(request_.graph, request_.machine, clock_, draft->plan).step.count();
    return {};
  }

  Individual mutated(Individual individual, std::size_t changes) {
    for (std::size_t i = 0; i < changes && !individual.genes.empty(); ++i) {
      Gene& gene = individual.genes[random_.below(individual.genes.size())];
      if (random_.below(3) == 0) gene.out = !gene.out;
      gene.lag = static_cast<std::uint8_t>(random_.below(kFarthest));
      gene.lead = static_cast<std::uint8_t>(random_.below(kFarthest));
    }
    return individual;
  }

  const Individual& tournament() {
    const Individual& one = population_[random_.below(population_.size())];
    const Individual& other = population_[random_.below(population_.size())];
    return one.cost <= other.cost ? one : other;
  }

  Individual child() {
    Individual made = tournament();
    const Individual& other = tournament();
    for (std::size_t i = 0; i < made.genes.size(); ++i) {
      if (random_.below(2) == 0) made.genes[i] = other.genes[i];
    }
    const std::size_t changes = 1 + made.genes.size() / 64;
    return mutated(std::move(made), changes);
  }

  /// Returns the individual after its repair, or the best of the population where repair fails.
  Individual viable(Individual individual) const {
    return repair(individual) && evaluate(individual) ? individual : best();
  }

  /// Replaces the population by children; the best individual survives.
  void breed() {
    std::vector<Individual> next{best()};
    while (next.size() < kPopulation) next.push_back(viable(child()));
    population_ = std::move(next);
  }

  const Individual& best() const {
    return *std::min_element(population_.begin(), population_.end(),
                             [](const Individual& a, const Individual& b) { return a.cost < b.cost; });
  }

  const PlanRequest& request_;
  const StepUses& uses_;
  std::int64_t capacity_;
  KernelClock clock_;
  std::vector<Absence> absences_;
  std::vector<std::int64_t> all_;  ///< bytes in fast memory during each kernel, if all stay
  SplitMix random_;
  std::vector<Individual> population_;
};

Result<std::uint32_t> generations_of(const PlanRequest& request) {
  const auto option = request.options.find("generations");
  if (option == request.options.end()) {
    const std::size_t kernels = std::max(request.graph.kernels.size(), kLargeGraph);
    return static_cast<std::uint32_t>(kGenerations * kLargeGraph / kernels);
  }
  const std::string& text = option->second;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value;
  return Error{ErrorCode::invalid_argument,
               fmt::format("generations is a number such as {}, and '{}' is given", kGenerations, text)};
}

}  // namespace

Result<Plan> plan_swap_advisor(const PlanRequest& request) {
  const auto generations = generations_of(request);
  if (!generations) return generations.error();
  const StepUses uses(request.graph);
  return plan_swapped(request, uses, "swapadvisor",
                      [&](Bytes capacity) { return Search(request, uses, capacity).run(*generations); });
}

}  // namespace terrace
