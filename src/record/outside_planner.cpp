// SPDX-License-Identifier: Apache-2.0
#include "record/outside_planner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/child_process.hpp"
#include "migration/repack.hpp"
#include "record/plan_question.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

constexpr std::string_view kPrefix = "exec:";
constexpr int kAttempts = 8;  // as often as our own planners plan anew to fit

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<std::string> command_of(std::string_view planner) {
  return words_of(planner.substr(kPrefix.size()));
}

Error failed(std::string_view planner, const std::string& why) {
  return {ErrorCode::invalid_argument, fmt::format("planner {} {}", planner, why)};
}

/// Programs say at the end of their errors what went wrong.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  const std::size_t line = text.rfind('\n');
  const std::string_view last = line == std::string_view::npos ? text : text.substr(line + 1);
  return last.empty() ? "" : fmt::format(": {}", last);
}

Result<std::string> ask(std::string_view planner, const PlanRequest& request, const std::stop_token& stop) {
  auto outcome = run_child(command_of(planner), plan_question(request), {.stop = stop});
  if (!outcome) return failed(planner, outcome.error().message);
  switch (outcome->end) {
    case ChildOutcome::End::exited:
      if (outcome->code == 0) return std::move(outcome->out);
      return failed(planner, fmt::format("ended with status {}{}", outcome->code, last_line(outcome->err)));
    case ChildOutcome::End::killed:
      return failed(planner, fmt::format("was ended by signal {}{}", outcome->code, last_line(outcome->err)));
    case ChildOutcome::End::stopped:
      return failed(planner, "was stopped before it had a plan: give it more time");
    case ChildOutcome::End::wrote_too_much:
      return failed(planner, "wrote more than any plan has");
  }
  return failed(planner, "did not end");
}

/// Asked for less and less, until what was left to us to pack fits.
Result<Plan> fitting_plan(std::string_view planner, const PlanRequest& request, const std::stop_token& stop) {
  PlanRequest asked = request;
  Bytes missing{};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto text = ask(planner, asked, stop);
    if (!text) return text.error();
    auto answer = read_answer(*text, request);
    if (!answer) return failed(planner, fmt::format("wrote no plan: {}", answer.error().message));
    Plan plan =
        answer->has_offsets ? std::move(answer->plan) : with_offsets(request, std::move(answer->plan));
    if (answer->has_offsets || plan.budget[0] <= request.budget[0]) return plan;
    missing = plan.budget[0] - request.budget[0];
    if (missing >= asked.budget[0]) break;
    asked.budget[0] -= missing;
  }
  return failed(planner, fmt::format("made plans whose regions do not fit: {} of fast memory are missing",
                                     readable(missing)));
}

/// The simulator takes safe plans only.
Result<Plan> safe_plan(std::string_view planner, const PlanRequest& request, const std::stop_token& stop) {
  auto plan = fitting_plan(planner, request, stop);
  if (!plan) return plan;
  plan->planner = planner;
  for (std::size_t i = 0; i < plan->budget.size() && i < request.budget.size(); ++i) {
    if (plan->budget[i] > request.budget[i]) {
      return failed(planner, fmt::format("takes {} of {} where {} is given", readable(plan->budget[i]),
                                         request.machine.tiers[i].name, readable(request.budget[i])));
    }
  }
  auto verified = verify(request.graph, request.machine, *std::move(plan));
  if (!verified) return verified.error();
  return verified->plan();
}

}  // namespace

bool is_outside_planner(std::string_view planner) { return planner.starts_with(kPrefix); }

Result<void> check_outside_planner(std::string_view planner) {
  if (is_outside_planner(planner) && !command_of(planner).empty()) return {};
  return Error{ErrorCode::invalid_argument,
               "exec: is followed by a program and its arguments, as in exec:./mine or exec:python3 mine.py"};
}

Result<Plan> make_outside_plan(std::string_view planner, const PlanRequest& request,
                               const std::stop_token& stop) {
  if (auto known = check_outside_planner(planner); !known) return known.error();
  return make_plan_by([&](const PlanRequest& asked) { return safe_plan(planner, asked, stop); }, planner,
                      request);
}

}  // namespace terrace
