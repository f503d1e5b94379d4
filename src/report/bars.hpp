// Bar charts as one SVG that needs nothing else: bars lie on their side, one group for each label, one bar
// for each series, in percent. Pure.
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

/// One below the other. pre: every series has a value for every label
std::string bars_svg(const std::string& heading, std::span<const BarChart> charts);

}  // namespace terrace
