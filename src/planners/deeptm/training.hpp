// SPDX-License-Identifier: Apache-2.0
// Trains an agent in an environment, episode by episode, and keeps the best episode (004 section IV-C).
//
//   greedy      doing what the agent thinks best; other actions are drawn at random
//   score       the episodic reward, 004 eq. 9-13: what an episode is judged by
//
// The first episode follows heat alone, so that there is a plan from the start and no result is worse than
// the planner `heat`. Two more bring what is used when it is used and let heat say what
// leaves: one always, one where that costs less at once. Then greedy actions become more and more frequent,
// as in 004 Table II. At last single decisions of the best episode are changed, which 004 does not do. All
// limits are counts of work, so that the same request gives the same plan.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "planners/deeptm/agent.hpp"
#include "planners/deeptm/rollout.hpp"

namespace terrace::deeptm {

struct TrainingRules {
  std::uint32_t episodes = 0;  ///< in which the agent learns; 0: as many as the graph's size allows
  std::optional<std::uint32_t> refine = {};  ///< episodes that change single decisions of the best, likewise
  double beta = 1;  ///< how much time counts beside the price of fast memory (004 eq. 13)
  std::uint64_t seed = 0;
  Learning learning = {};
};

/// A tier for every decision of the environment, or kNotAsked.
using Actions = std::vector<std::uint8_t>;
constexpr std::uint8_t kNotAsked = 0xFF;

class Training {
 public:
  /// Borrows the environment.
  Training(const Environment& environment, const TrainingRules& rules);

  /// Continues from another: with its network, and with its best episode as one more to beat.
  void continue_from(const LearnedAgent& agent);
  /// Trains until the best episode stops improving, the limit is reached or a stop is requested.
  void run();

  /// Repeats the best episode with so much fast memory. What does not fit is decided by heat.
  Result<Draft> draft(Bytes capacity) const;
  const Actions& actions() const { return best_; }
  const std::vector<float>& weights() const { return agent_.weights(); }
  std::uint32_t episodes() const { return episode_; }
  /// The step of the best episode, and how many episodes it took to find it.
  Seconds step() const { return best_step_; }
  std::uint32_t found_at() const { return found_at_; }

 private:
  enum class Policy { heat, demand, cost, repeat, learned, refine };
  void run_episode(Policy policy, double greedy);
  std::uint32_t choose(const Rollout& rollout, Policy policy, double greedy);
  double judge(const Rollout& rollout, const Actions& actions);
  double score(Seconds step, Bytes fast) const;
  std::uint32_t most_episodes() const;
  std::uint32_t most_refining() const;
  void refine();
  std::uint32_t changed(const Rollout& rollout);
  void report(std::string_view what, std::uint32_t most) const;
  bool is_stopped() const { return environment_.request().stop.stop_requested(); }

  const Environment& environment_;
  TrainingRules rules_;
  Agent agent_;
  SplitMix random_;
  Actions earlier_;  ///< the best episode of an earlier agent
  Actions best_;
  double best_score_ = 0;
  Bytes capacity_;       ///< of fast memory for the next episode: less after one that packing did not fit
  Bytes best_capacity_;  ///< with which the best episode was made
  Seconds best_step_{0}, slowest_{0}, fastest_{0};
  std::uint32_t episode_ = 0, found_at_ = 0;
  std::uint64_t changes_ = 0;  ///< of the best episode's decisions that the next is expected to change
  std::vector<float> state_, after_;
};

}  // namespace terrace::deeptm
