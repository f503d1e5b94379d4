// SPDX-License-Identifier: Apache-2.0
// The options of the planners `heat` and `deeptm` (deeptm.hpp).
#pragma once

#include "planners/deeptm/training.hpp"

namespace terrace::deeptm {

struct Options {
  EnvironmentRules rules;
  TrainingRules training;
};

/// Fails with one sentence where a value is not known.
Result<Options> parse_options(const PlanRequest& request);

}  // namespace terrace::deeptm
