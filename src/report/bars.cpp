#include "report/bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/check.hpp"

namespace terrace {
namespace {

constexpr int kWidth = 760, kLeft = 160, kBars = 520, kBar = 14, kGap = 8, kLine = 22;
/// These colours are distinguishable with colour blindness, too (Okabe and Ito).
constexpr std::array kColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

class Drawing {
 public:
  void text(int x, const std::string& words, const char* style = "") {
    fmt::format_to(out(), "<text x=\"{}\" y=\"{}\"{}>{}</text>\n", x, y_ + kBar - 3, style, escaped(words));
  }
  void bar(double percent, std::size_t series) {
    fmt::format_to(out(), "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", kLeft, y_,
                   kBars * percent / 100, kBar - 2, colour(series));
    text(kLeft + static_cast<int>(kBars * percent / 100) + 4, fmt::format("{:.1f}%", percent));
  }
  void key(int x, const std::string& name, std::size_t series) {
    fmt::format_to(out(), "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", x, y_ + 1,
                   colour(series));
    text(x + 14, name);
  }
  void down(int by) { y_ += by; }
  std::string finish() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"white\"/>\n"
        "{2}</svg>\n",
        kWidth, y_ + kLine, body_);
  }

 private:
  static const char* colour(std::size_t series) { return kColours[series % kColours.size()]; }
  std::back_insert_iterator<std::string> out() { return std::back_inserter(body_); }
  std::string body_;
  int y_ = kLine / 2;
};

void draw(Drawing& drawing, const BarChart& chart) {
  drawing.text(10, chart.title, " font-weight=\"bold\"");
  drawing.down(kLine);
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    drawing.key(kLeft + static_cast<int>(i) * 180, chart.series[i].name, i);
  drawing.down(kLine);
  for (std::size_t label = 0; label < chart.labels.size(); ++label) {
    drawing.text(10, chart.labels[label]);
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      check(chart.series[i].percent.size() == chart.labels.size(), "a series has a value for every label");
      drawing.bar(std::clamp(chart.series[i].percent[label], 0.0, 100.0), i);
      drawing.down(kBar);
    }
    drawing.down(kGap);
  }
  drawing.down(kLine);
}

}  // namespace

std::string bars_svg(const std::string& heading, std::span<const BarChart> charts) {
  Drawing drawing;
  drawing.text(10, heading, " font-size=\"15\"");
  drawing.down(kLine * 3 / 2);
  for (const BarChart& chart : charts) draw(drawing, chart);
  return drawing.finish();
}

}  // namespace terrace
