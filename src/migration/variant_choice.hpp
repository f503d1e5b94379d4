// SPDX-License-Identifier: Apache-2.0
// Which variant of a kernel runs, where that decides what fast memory it takes.
//
// A kernel that has variants with a workspace and variants without is planned as one of them: the fastest
// whose workspace fits beside the operands, or all that can without one. Variants give the same bits unless a
// run asks for any (backends/processor.hpp), so the choice may follow from measured times. Other variants
// differ in time alone, and planners choose them as they write their plan.
#pragma once

#include <cstdint>
#include <vector>

#include "terrace/plan_request.hpp"

namespace terrace {

/// Returns the variant that is fastest with all operands in tier 0, of those whose workspace has room in the
/// kernel's. pre: the profile has every
/// variant of the graph
std::uint32_t fastest_variant(const Graph& graph, const Profile& profile, KernelId kernel);

/// What a kernel runs as where it has the choice: what is fastest by itself, or what needs no workspace,
/// which leaves the room to others (001 eq. 9-10 choose both at once).
enum class Prefer { fastest, no_workspace };

class VariantChoice {
 public:
  /// `asked` outlives this.
  explicit VariantChoice(const PlanRequest& asked, Prefer prefer = Prefer::fastest);

  /// The largest workspace that is in use and need not be; zero: preferring none changes nothing.
  Bytes spare_workspace() const { return spare_; }

  /// The request with every such kernel narrowed to the variant that it runs as; borrows from this.
  PlanRequest request() const;
  /// Turns a plan for that request into one for what was asked.
  void restore(Plan& plan) const;

 private:
  static constexpr std::uint32_t kAny = ~std::uint32_t{0};
  void narrow(KernelId kernel, std::uint32_t variant);

  const PlanRequest& asked_;
  Graph graph_;
  Profile profile_;
  Bytes spare_;
  std::vector<std::uint32_t> chosen_;  ///< by kernel; kAny: it is planned with all its variants
};

}  // namespace terrace
