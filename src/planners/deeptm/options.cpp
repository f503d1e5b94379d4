// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/options.hpp"

#include "planners/option_values.hpp"

namespace terrace::deeptm {
namespace {

Result<void> parse_option(std::string_view name, std::string_view value, Options& options) {
  HeatRules& heat = options.rules.heat;
  if (name == "by")
    return parse_choice(name, value,
                        {{"all", Property::all},
                         {"size", Property::size},
                         {"lifetime", Property::lifetime},
                         {"recency", Property::recency},
                         {"frequency", Property::frequency}},
                        heat.property);
  if (name == "weights")
    return parse_choice(name, value, {{"dynamic", Weighting::dynamic}, {"fixed", Weighting::fixed}},
                        heat.weighting);
  if (name == "hotter")
    return parse_choice(name, value, {{"short", Hotter::short_lived}, {"long", Hotter::long_lived}},
                        heat.hotter);
  if (name == "copies")
    return parse_choice(name, value, {{"async", Copies::asynchronous}, {"sync", Copies::synchronous}},
                        options.rules.copies);
  if (name == "reward")
    return parse_choice(name, value, {{"share", Reward::share}, {"time", Reward::time}},
                        options.rules.reward);
  if (name == "beta") {
    double& beta = options.training.beta;
    if (!parse_number(value, beta) || beta < 0 || beta > 1)
      return wrong_option(name, "a number from 0 to 1 such as 0.5", value);
  }
  if (name == "episodes" &&
      (!parse_number(value, options.training.episodes) || options.training.episodes == 0))
    return wrong_option(name, "a number such as 200", value);
  if (name == "refine" && !parse_number(value, options.training.refine.emplace()))
    return wrong_option(name, "a number such as 200", value);
  double seconds = 0;
  if (name == "seconds" && (!parse_number(value, seconds) || seconds < 0))
    return wrong_option(name, "a number of seconds such as 10", value);
  return {};
}

}  // namespace

Result<Options> parse_options(const PlanRequest& request) {
  return parse_each_option<Options>(request, parse_option);
}

}  // namespace terrace::deeptm
