#include "timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

namespace terrace::demo {
namespace {

constexpr double kWidth = 1000, kChart = 160, kLane = 22, kRow = 13, kLabel = 190;
constexpr std::size_t kColumns = 500, kTensors = 48;
constexpr const char* kTierColours[] = {"#2b6cb0", "#dd8833", "#7a9a3a", "#8a5aa8"};

struct Group {
  const char *name, *colour;
};
constexpr std::array<Group, 4> kGroups{{{"weights and optimizer state", "#4a5568"},
                                        {"activations", "#2b8a8a"},
                                        {"gradients", "#c05a78"},
                                        {"inputs, statistics and workspaces", "#b7a04a"}}};

std::size_t group_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::weight:
    case TensorKind::optimizer_state:
      return 0;
    case TensorKind::activation:
      return 1;
    case TensorKind::gradient:
      return 2;
    default:
      return 3;
  }
}

/// The time a tensor spends in a tier.
struct Stay {
  TensorId tensor;
  TierId tier;
  Seconds begin{0}, end{0};
};

std::vector<Stay> stays_of(const Picture& picture) {
  std::vector<Stay> stays;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> open;
  const auto begin = [&](const Alloc& alloc, Seconds now) {
    open[{alloc.tensor.index, alloc.tier.index}] = stays.size();
    stays.push_back({alloc.tensor, alloc.tier, now, picture.timeline.step});
  };
  for (const Alloc& alloc : picture.plan.start) begin(alloc, Seconds{0});
  for (std::size_t i = 0; i < picture.plan.instructions.size(); ++i) {
    const Seconds now = picture.timeline.instructions[i].begin;
    if (const auto* alloc = std::get_if<Alloc>(&picture.plan.instructions[i])) begin(*alloc, now);
    if (const auto* free = std::get_if<Free>(&picture.plan.instructions[i]))
      stays[open.at({free->tensor.index, free->tier.index})].end = now;
  }
  return stays;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

class Page {
 public:
  explicit Page(const Picture& picture) : picture_(picture), stays_(stays_of(picture)) {}

  std::string text() {
    head();
    for (std::uint32_t tier = 0; tier < picture_.machine.tiers.size(); ++tier) occupancy({tier});
    lanes();
    tensors();
    add("</body></html>\n");
    return std::move(text_);
  }

 private:
  template <class... Parts>
  void add(fmt::format_string<Parts...> format, Parts&&... parts) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Parts>(parts)...);
  }

  double x(Seconds time) const { return kLabel + kWidth * (time / picture_.timeline.step); }
  const std::string& tier_name(TierId tier) const { return picture_.machine[tier].name; }

  void begin_svg(double height) {
    add("<svg width='{}' height='{}' font-family='sans-serif' font-size='11'>\n", kLabel + kWidth + 10,
        height);
  }
  void label(double y, const std::string& text) {
    add("<text x='{}' y='{:.0f}' text-anchor='end'>{}</text>\n", kLabel - 8, y, escaped(text));
  }
  void bar(const Interval& when, double y, double height, const char* colour, const std::string& title) {
    add("<rect x='{:.2f}' y='{:.1f}' width='{:.2f}' height='{:.1f}' fill='{}'><title>{}</title></rect>\n",
        x(when.begin), y, std::max(0.3, x(when.end) - x(when.begin)), height, colour, escaped(title));
  }

  void head() {
    add("<!DOCTYPE html><html><head><meta charset='utf-8'><title>{0}: what lived where</title></head>\n"
        "<body style='font-family:sans-serif;max-width:1250px;margin:2em auto'>\n"
        "<h1>{0}: one step under a plan</h1>\n"
        "<p>Planned by {1}; from left to right {2:.3f} s. Bars have names: point at them.</p>\n<p>",
        escaped(picture_.graph.name), escaped(picture_.plan.planner), picture_.timeline.step.count());
    for (const Group& group : kGroups)
      add("<span style='color:{}'>&#9632;</span> {} &nbsp; ", group.colour, group.name);
    add("</p>\n");
  }

  using Columns = std::array<std::vector<double>, kGroups.size()>;

  /// Returns the bytes of each group in a tier at the middle of each column.
  Columns bytes_in(TierId tier) const {
    Columns columns;
    for (auto& one : columns) one.assign(kColumns, 0);
    for (const Stay& stay : stays_) {
      if (stay.tier != tier) continue;
      const Tensor& tensor = picture_.graph[stay.tensor];
      const double bytes = static_cast<double>(tensor.bytes.count);
      const auto column = [&](Seconds time) {
        const double place = time / picture_.timeline.step * static_cast<double>(kColumns) + 0.5;
        return std::min(kColumns, static_cast<std::size_t>(place));
      };
      for (std::size_t i = column(stay.begin); i < column(stay.end); ++i)
        columns[group_of(tensor.kind)][i] += bytes;
    }
    return columns;
  }

  void occupancy(TierId tier) {
    const Bytes budget = picture_.plan.budget[tier.index];
    if (budget == Bytes{0}) return;
    add("<h2>{}: {} taken</h2>\n", escaped(tier_name(tier)), readable(budget));
    begin_svg(kChart + 2);
    add("<rect x='{}' y='1' width='{}' height='{}' fill='#f4f4f4' stroke='#888'/>\n", kLabel, kWidth, kChart);
    const Columns columns = bytes_in(tier);
    std::vector<double> below(kColumns, 0);
    const auto point = [&](std::size_t i) {
      const double height = kChart * below[i] / static_cast<double>(budget.count);
      add("{:.1f},{:.1f} ", kLabel + kWidth * (static_cast<double>(i) + 0.5) / kColumns, kChart + 1 - height);
    };
    for (std::size_t group = 0; group < kGroups.size(); ++group) {
      add("<polygon fill='{}' points='", kGroups[group].colour);
      for (std::size_t i = 0; i < kColumns; ++i) point(i);
      for (std::size_t i = 0; i < kColumns; ++i) below[i] += columns[group][i];
      for (std::size_t i = kColumns; i-- > 0;) point(i);
      add("'/>\n");
    }
    add("</svg>\n");
  }

  /// Draws one lane for kernels, one for waiting and one for each link.
  void lanes() {
    std::vector<std::string> names{"kernels", "waiting"};
    std::map<std::pair<TierId, TierId>, std::size_t> links;
    for (const Traffic& traffic : picture_.timeline.moved) {
      links[{traffic.from, traffic.to}] = names.size();
      names.push_back(fmt::format("{} > {}, {}", tier_name(traffic.from), tier_name(traffic.to),
                                  readable(traffic.bytes)));
    }
    add("<h2>What happened when</h2>\n");
    begin_svg(kLane * static_cast<double>(names.size()) + 4);
    const auto y = [](std::size_t lane) { return kLane * static_cast<double>(lane); };
    for (std::size_t i = 0; i < names.size(); ++i) label(y(i) + 15, names[i]);
    for (std::size_t i = 0; i < picture_.plan.instructions.size(); ++i) {
      const Instruction& instruction = picture_.plan.instructions[i];
      const Interval& when = picture_.timeline.instructions[i];
      const auto draw = [&](std::size_t lane, const char* colour) {
        bar(when, y(lane) + 3, kLane - 6, colour, to_text(instruction, picture_.graph, picture_.machine));
      };
      if (std::holds_alternative<Run>(instruction)) draw(0, "#2b8a8a");
      if (std::holds_alternative<Wait>(instruction) && when.length() > picture_.timeline.step / 2000)
        draw(1, "#c0392b");
      if (const auto* copy = std::get_if<Copy>(&instruction))
        draw(links.at({copy->from, copy->to}), kTierColours[copy->to.index % std::size(kTierColours)]);
    }
    add("</svg>\n");
  }

  /// Draws the largest tensors that move, each in a row.
  void tensors() {
    std::map<std::uint32_t, std::vector<Stay>> moving;
    for (const Stay& stay : stays_) moving[stay.tensor.index].push_back(stay);
    std::vector<TensorId> chosen;
    for (const auto& [index, stays] : moving) {
      const auto elsewhere = [&](const Stay& stay) { return stay.tier != stays[0].tier; };
      if (std::any_of(stays.begin(), stays.end(), elsewhere)) chosen.push_back({index});
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](TensorId a, TensorId b) {
      return picture_.graph[a].bytes > picture_.graph[b].bytes;
    });
    chosen.resize(std::min(chosen.size(), kTensors));
    add("<h2>The largest tensors that moved</h2>\n<p>");
    for (std::uint32_t tier = 0; tier < picture_.machine.tiers.size(); ++tier) {
      add("<span style='color:{}'>&#9632;</span> in {} &nbsp; ", kTierColours[tier % std::size(kTierColours)],
          escaped(tier_name({tier})));
    }
    add("</p>\n");
    begin_svg(kRow * static_cast<double>(chosen.size()) + 4);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      row(moving.at(chosen[i].index), kRow * static_cast<double>(i));
    add("</svg>\n");
  }

  /// Draws a tensor's stays; where it is in two tiers at once, one is above the other.
  void row(const std::vector<Stay>& stays, double y) {
    const Tensor& tensor = picture_.graph[stays[0].tensor];
    label(y + 10,
          tensor.name.size() > 30 ? "..." + tensor.name.substr(tensor.name.size() - 27) : tensor.name);
    const double height = (kRow - 2) / static_cast<double>(picture_.machine.tiers.size());
    for (const Stay& stay : stays) {
      bar({stay.begin, stay.end}, y + height * stay.tier.index, height,
          kTierColours[stay.tier.index % std::size(kTierColours)],
          fmt::format("{}, {}, in {}", tensor.name, readable(tensor.bytes), tier_name(stay.tier)));
    }
  }

  const Picture& picture_;
  const std::vector<Stay> stays_;
  std::string text_;
};

}  // namespace

std::string to_html(const Picture& picture) { return Page(picture).text(); }

}  // namespace terrace::demo
