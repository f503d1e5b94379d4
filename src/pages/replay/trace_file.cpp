// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <istream>
#include <unordered_map>

#include "pages/replay/trace.hpp"

#include <algorithm>

namespace terrace::pages {
namespace {

struct TraceEntry {
  std::uint32_t block = 0;
  Accesses accesses;
};

class RecordedTrace final : public AccessTrace {
 public:
  RecordedTrace(TraceShape shape, std::vector<std::vector<TraceEntry>> windows)
      : shape_(std::move(shape)), windows_(std::move(windows)) {}
  const TraceShape& shape() const override { return shape_; }
  void window(std::uint32_t window, std::span<Accesses> into) const override {
    std::fill(into.begin(), into.end(), Accesses{});
    for (const TraceEntry& entry : windows_[window]) into[entry.block] = entry.accesses;
  }

 private:
  TraceShape shape_;
  std::vector<std::vector<TraceEntry>> windows_;
};

/// Words of a line, one after the other.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  template <class Number>
  bool number(Number& to, int base = 10) {
    text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size()));
    const auto [end, failed] = std::from_chars(text_.data(), text_.data() + text_.size(), to, base);
    if (failed != std::errc()) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return text_.empty() || text_.front() == ' ';
  }
  bool ended() const { return text_.find_first_not_of(' ') == text_.npos; }

 private:
  std::string_view text_;
};

constexpr std::string_view kTraceHead = "terrace-trace 1 block=";
constexpr std::size_t kMostBlocks = std::size_t{1} << 26;

class TraceReader {
 public:
  TraceReader(std::istream& from, std::string name) : from_(from) { shape_.name = std::move(name); }

  Result<std::unique_ptr<AccessTrace>> read() {
    std::string line;
    if (!std::getline(from_, line) || !line.starts_with(kTraceHead)) return wrong("is no trace");
    std::uint64_t block = 0;
    Words head(std::string_view(line).substr(kTraceHead.size()));
    if (!head.number(block) || !head.ended() || block < 4096 || (block & (block - 1)) != 0)
      return wrong("names no block of at least 4096 bytes that is a power of two");
    shape_.block = Bytes{block};
    while (std::getline(from_, line)) {
      ++line_;
      if (line == "window") {
        windows_.emplace_back();
      } else if (!take(line)) {
        return wrong("is neither `window` nor a block with its reads and writes");
      }
    }
    if (windows_.empty() || numbers_.empty()) return wrong("is followed by no accesses");
    shape_.blocks = static_cast<std::uint32_t>(numbers_.size());
    shape_.windows = static_cast<std::uint32_t>(windows_.size());
    return std::unique_ptr<AccessTrace>(
        std::make_unique<RecordedTrace>(std::move(shape_), std::move(windows_)));
  }

 private:
  Error wrong(const char* what) const {
    return {ErrorCode::invalid_argument,
            fmt::format("{}: line {} {}: record one with `terrace run --record`", shape_.name, line_, what)};
  }
  /// `block reads writes`; the block in hexadecimal.
  bool take(std::string_view line) {
    std::uint64_t place = 0;
    std::uint32_t reads = 0, writes = 0;
    Words words(line);
    if (windows_.empty() || !words.number(place, 16) || !words.number(reads) || !words.number(writes) ||
        !words.ended() || numbers_.size() >= kMostBlocks)
      return false;
    const auto number =
        numbers_.try_emplace(place, static_cast<std::uint32_t>(numbers_.size())).first->second;
    windows_.back().push_back({number, {static_cast<float>(reads), static_cast<float>(writes)}});
    return true;
  }

  std::istream& from_;
  TraceShape shape_;
  std::size_t line_ = 1;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // blocks in the order of their first touch
  std::vector<std::vector<TraceEntry>> windows_;
};

}  // namespace

Result<std::unique_ptr<AccessTrace>> read_trace(std::istream& from, std::string name) {
  return TraceReader(from, std::move(name)).read();
}

namespace {

class LargerBlocks final : public AccessTrace {
 public:
  LargerBlocks(const AccessTrace& trace, Bytes block)
      : trace_(trace), each_(static_cast<std::uint32_t>(block.count / trace.shape().block.count)) {
    shape_ = trace.shape();
    shape_.block = block;
    shape_.blocks = (shape_.blocks + each_ - 1) / each_;
    const std::vector<bool>* const hot = trace.hot_set();
    if (hot == nullptr) return;
    std::vector<std::uint32_t> count(shape_.blocks);
    for (std::size_t i = 0; i < hot->size(); ++i) count[i / each_] += (*hot)[i];
    for (const std::uint32_t of_block : count) hot_.push_back(2 * of_block > each_);
  }

  const TraceShape& shape() const override { return shape_; }
  void window(std::uint32_t number, std::span<Accesses> into) const override {
    std::vector<Accesses> small(trace_.shape().blocks);
    trace_.window(number, small);
    std::fill(into.begin(), into.end(), Accesses{});
    for (std::size_t i = 0; i < small.size(); ++i) {
      into[i / each_].reads += small[i].reads;
      into[i / each_].writes += small[i].writes;
    }
  }
  const std::vector<bool>* hot_set() const override { return hot_.empty() ? nullptr : &hot_; }

 private:
  const AccessTrace& trace_;
  std::uint32_t each_;
  TraceShape shape_;
  std::vector<bool> hot_;
};

}  // namespace

std::unique_ptr<AccessTrace> in_larger_blocks(const AccessTrace& trace, Bytes block) {
  return std::make_unique<LargerBlocks>(trace, block);
}

}  // namespace terrace::pages
