// Draws bar charts as one self-contained SVG: horizontal bars in percent, one group for each label and one
// bar for each series. The function is pure.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace terrace {

struct BarSeries {
  std::string name;
  std::vector<double> percent;  ///< one for each label, from 0 to 100
};

struct BarChart {
  std::string title;
  std::vector<std::string> labels;
  std::vector<BarSeries> series;
};

/// Draws the charts one below the other. pre: every series has a value for every label
std::string bars_svg(const std::string& heading, std::span<const BarChart> charts);

}  // namespace terrace
