// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.hpp"
#include "plan/plan_keys.hpp"
#include "terrace/plan.hpp"

namespace terrace {
namespace {

/// Writes straight into the text: a plan has hundreds of thousands of small arrays, and as many trees of
/// values would take longer than everything else that is done with it.
class Writer {
 public:
  std::string run(const Plan& plan) && {
    add("{{\"format\":\"{}\",\"version\":{},\n\"planner\":{},\n", plan_keys::kFormat, plan_keys::kVersion,
        quoted(plan.planner));
    if (!plan.remark.empty()) add("\"remark\":{},\n", quoted(plan.remark));
    add("\"graph\":{},\"machine\":{},\"profile\":{},\n\"budget\":", quoted(plan.graph), quoted(plan.machine),
        quoted(plan.profile));
    list(plan.budget, ",", [&](Bytes budget) { amount(budget.count); });
    text_ += ",\n\"prediction\":";
    prediction(plan.prediction);
    text_ += ",\n\"start\":";
    list(plan.start, ",\n", [&](const Alloc& region) {
      text_ += '[';
      place(region);
    });
    text_ += ",\n\"instructions\":";
    list(plan.instructions, ",\n", [&](const Instruction& one) { std::visit(*this, one); });
    return std::move(text_ += "}\n");
  }

  void operator()(const Alloc& alloc) {
    text_ += "[\"alloc\",";
    place(alloc);
  }
  void operator()(const Free& free) { add("[\"free\",{},{}]", free.tensor.index, free.tier.index); }
  void operator()(const Copy& copy) {
    text_ += "[\"copy\",";
    list(copy.tensors, ",", [&](TensorId tensor) { add("{}", tensor.index); });
    add(",{},{},{}", copy.from.index, copy.to.index, copy.ticket);
    lanes({}, {}, copy.after);
  }
  void operator()(const Wait& wait) { add("[\"wait\",{}]", wait.ticket); }
  void operator()(const Run& run) {
    add("[\"run\",{},{},", run.kernel.index, run.variant);
    list(run.tiers, ",", [&](TierId tier) { add("{}", tier.index); });
    lanes(run.engine, run.ticket, run.after);
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  template <class Elements, class Write>
  void list(const Elements& elements, std::string_view between, Write write) {
    text_ += '[';
    bool first = true;
    for (const auto& element : elements) {
      if (!first) text_ += between;
      first = false;
      write(element);
    }
    text_ += ']';
  }

  /// Ends an instruction. What every plan for one lane leaves out is left out.
  void lanes(EngineId engine, std::optional<std::uint32_t> ticket, const std::vector<std::uint32_t>& after) {
    std::string_view before = ",{";
    const auto key = [&](std::string_view name) { add("{}\"{}\":", std::exchange(before, ","), name); };
    if (engine != EngineId{}) key("engine"), add("{}", engine.index);
    if (ticket) key("ticket"), add("{}", *ticket);
    if (!after.empty()) {
      key("after");
      list(after, ",", [&](std::uint32_t one) { add("{}", one); });
    }
    text_ += before == "," ? "}]" : "]";
  }

  void place(const Alloc& region) {
    add("{},{},", region.tensor.index, region.tier.index);
    amount(region.offset);
    text_ += ']';
  }

  void prediction(const Prediction& prediction) {
    text_ += "{\"step\":";
    time(prediction.step);
    text_ += ",\"bound\":";
    time(prediction.bound);
    text_ += ",\"exposed\":";
    time(prediction.exposed);
    text_ += ",\"moved\":";
    list(prediction.moved, ",", [&](const Traffic& traffic) {
      add("[{},{},", traffic.from.index, traffic.to.index);
      amount(traffic.bytes.count);
      text_ += ']';
    });
    text_ += '}';
  }

  void amount(std::uint64_t value) {
    check(value <= static_cast<std::uint64_t>(plan_keys::kMost), "an offset or amount of a plan is written");
    add("{}", value);
  }

  void time(Seconds value) {
    check(std::isfinite(value.count()) && value.count() >= 0, "a time that is written is one");
    add("{}", value.count());
  }

  static std::string quoted(const std::string& text) {
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
      check(false, "the names of a plan that is written are UTF-8");
      throw;
    }
  }

  std::string text_;
};

}  // namespace

std::string to_json(const Plan& plan) { return Writer().run(plan); }

}  // namespace terrace
