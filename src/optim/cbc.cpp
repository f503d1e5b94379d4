#include "optim/cbc.hpp"

#include "base/check.hpp"

#ifdef TERRACE_HAS_CBC
#include <Cbc_C_Interface.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#endif

namespace terrace::optim {

int Milp::add_variable(Kind kind, double cost) {
  kind_.push_back(kind);
  cost_.push_back(cost);
  return static_cast<int>(cost_.size()) - 1;
}

void Milp::add_row(std::span<const Term> terms, double lower, double upper) {
  for (const Term& term : terms) {
    entries_.push_back({term.variable, static_cast<int>(lower_.size()), term.factor});
  }
  lower_.push_back(lower);
  upper_.push_back(upper);
}

#ifdef TERRACE_HAS_CBC

namespace {

struct DeleteModel {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};
using Model = std::unique_ptr<Cbc_Model, DeleteModel>;

void configure(Cbc_Model* model, double gap, const MilpLimits& limits) {
  const auto set = [model](const char* name, const std::string& value) {
    Cbc_setParameter(model, name, value.c_str());
  };
  set("log", "0");
  set("slogLevel", "0");
  set("threads", "0");
  set("randomSeed", "1");
  set("randomCbcSeed", "1");
  set("timeMode", "elapsed");
  set("seconds", fmt::format("{}", limits.time.count()));
  set("maxNodes", fmt::format("{}", limits.nodes));
  set("ratioGap", fmt::format("{}", gap));
}

MilpResult result_of(Cbc_Model* model, int variables) {
  MilpResult result;
  if (Cbc_isProvenInfeasible(model) != 0) {
    result.status = MilpStatus::infeasible;
    return result;
  }
  const double* best = Cbc_bestSolution(model);
  if (best == nullptr) return result;
  constexpr int kStoppedOnGap = 2;
  const bool proven = Cbc_isProvenOptimal(model) != 0 || Cbc_secondaryStatus(model) == kStoppedOnGap;
  result.status = proven ? MilpStatus::proven : MilpStatus::stopped;
  result.objective = Cbc_getObjValue(model);
  result.bound = std::min(Cbc_getBestPossibleObjValue(model), result.objective);
  result.values.assign(best, best + variables);
  return result;
}

}  // namespace

bool has_cbc() { return true; }

MilpResult Milp::solve(double gap, const MilpLimits& limits) const {
  // CBC speaks up about programs without integers: all get one more, which nothing uses.
  const auto columns = static_cast<int>(variables()) + 1;
  std::vector<CoinBigIndex> start(variables() + 2);
  for (const Entry& entry : entries_) ++start[static_cast<std::size_t>(entry.variable) + 1];
  for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  std::vector<int> row(entries_.size());
  std::vector<double> factor(entries_.size());
  std::vector<CoinBigIndex> next(start.begin(), start.end() - 1);
  for (const Entry& entry : entries_) {
    const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(entry.variable)]++);
    row[place] = entry.row;
    factor[place] = entry.factor;
  }
  std::vector<double> most(variables() + 1, 1), cost = cost_;
  cost.push_back(0);
  for (std::size_t i = 0; i < variables(); ++i) {
    if (kind_[i] == Kind::continuous) most[i] = kInfinite;
  }
  const Model model(Cbc_newModel());
  Cbc_loadProblem(model.get(), columns, static_cast<int>(rows()), start.data(), row.data(), factor.data(),
                  nullptr, most.data(), cost.data(), lower_.data(), upper_.data());
  for (int i = 0; i < columns; ++i) {
    if (most[static_cast<std::size_t>(i)] == 1) Cbc_setInteger(model.get(), i);
  }
  configure(model.get(), gap, limits);
  Cbc_solve(model.get());
  return result_of(model.get(), columns - 1);
}

#else

bool has_cbc() { return false; }

MilpResult Milp::solve(double, const MilpLimits&) const {
  check(false, "this build has no CBC");
  return {};
}

#endif

}  // namespace terrace::optim
