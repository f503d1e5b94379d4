// SPDX-License-Identifier: Apache-2.0
#include "report/bars.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(Bars, DrawsEveryBarAndNamesIt) {
  const std::vector<BarChart> charts{{"first <one>", {"a", "b"}, {{"x", {50, 0}}, {"y", {12.5, 100}}}}};
  const std::string svg = bars_svg("heading & more", charts);
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char* part : {"heading &amp; more", "first &lt;one&gt;", ">a<", ">b<", ">x<", ">y<", "50.0%",
                           "0.0%", "12.5%", "100.0%", "width=\"65.0\"", "width=\"520.0\""}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part << " in\n" << svg;
  }
}

TEST(Bars, WantAValueForEveryLabel) {
  const std::vector<BarChart> charts{{"first", {"a", "b"}, {{"x", {50}}}}};
  EXPECT_THROW(bars_svg("", charts), std::logic_error);
}

}  // namespace
}  // namespace terrace
