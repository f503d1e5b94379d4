// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "profile/profile_keys.hpp"
#include "terrace/profile_json.hpp"

namespace terrace {
namespace {

/// Writes straight into the text, as plans are written: a profile has tens of thousands of small arrays.
class Writer {
 public:
  std::string run(const Profile& profile) && {
    add("{{\"format\":\"{}\",\"version\":{},\n\"graph\":{},\"machine\":{},\n\"kernels\":",
        profile_keys::kFormat, profile_keys::kVersion, quoted(profile.graph), quoted(profile.machine));
    list(profile.kernels, ",\n", [&](const KernelProfile& kernel) { write(kernel); });
    return std::move(text_ += "}\n");
  }

 private:
  void write(const KernelProfile& kernel) {
    text_ += "{\"times\":";
    list(kernel.variants, ",", [&](const std::vector<PlacedTime>& places) {
      list(places, ",", [&](const PlacedTime& placed) { write(placed); });
    });
    if (!kernel.operands.empty()) {
      text_ += ",\"accesses\":";
      list(kernel.operands, ",", [&](const Accesses& counted) {
        add("[{},{},{}]", number(counted.reads), number(counted.writes), counted.pages);
      });
    }
    text_ += '}';
  }

  /// What was estimated has one time, whether or not its operands were just used.
  void write(const PlacedTime& placed) {
    text_ += '[';
    list(placed.tiers, ",", [&](TierId tier) { add("{}", tier.index); });
    add(",{}", number(placed.cold.count()));
    const bool estimated =
        placed.samples == 0 && placed.warm == placed.cold && placed.spread == Seconds{0};
    if (!estimated)
      add(",{},{},{}", number(placed.warm.count()), number(placed.spread.count()), placed.samples);
    text_ += ']';
  }

  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  template <class Elements, class Write>
  void list(const Elements& elements, std::string_view between, Write write_one) {
    text_ += '[';
    bool first = true;
    for (const auto& element : elements) {
      if (!first) text_ += between;
      first = false;
      write_one(element);
    }
    text_ += ']';
  }

  static double number(double value) {
    check(std::isfinite(value) && value >= 0, "a number of a profile that is written is finite");
    return value;
  }

  static std::string quoted(const std::string& text) {
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
      check(false, "the fingerprints of a profile that is written are UTF-8");
      throw;
    }
  }

  std::string text_;
};

}  // namespace

std::string to_json(const Profile& profile) { return Writer().run(profile); }

}  // namespace terrace
