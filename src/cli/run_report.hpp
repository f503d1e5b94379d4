// SPDX-License-Identifier: Apache-2.0
// What `terrace run` says about a program: while it runs, and when it has ended.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "pages/run_board.hpp"
#include "terrace/bytes.hpp"

namespace terrace::cli {

struct RunOutcome {
  double seconds = 0;
  int code = 0;  ///< as a shell reports it
  Bytes fast;
  std::vector<pages::RunRow> processes;  ///< those that were managed
};

/// The rows that processes have taken so far.
std::vector<pages::RunRow> rows_of(const pages::RunBoard& board);
/// All processes taken together.
pages::RunRow sum_of(const std::vector<pages::RunRow>& rows);

std::string progress_text(const pages::RunRow& now, double seconds);
/// A few lines: how much memory there was, what it cost, and why.
std::string summary_text(const RunOutcome& outcome);
nlohmann::json to_json(const RunOutcome& outcome);

}  // namespace terrace::cli
