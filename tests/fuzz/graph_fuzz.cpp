// SPDX-License-Identifier: Apache-2.0
// Whatever text is given as a graph is refused with a sentence, or is a valid graph whose own text means the
// same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "graph/passes.hpp"
#include "terrace/graph_json.hpp"
#include "terrace/lifetimes.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto graph = terrace::graph_from_json({reinterpret_cast<const char*>(data), size});
  if (!graph) {
    require(!graph.error().message.empty());
    return 0;
  }
  require(terrace::validate(*graph).ok());
  const terrace::Bytes peak = terrace::Lifetimes(*graph).peak_bytes();
  const auto again = terrace::graph_from_json(terrace::to_json_text(*graph));
  require(again.ok() && *again == *graph);
  const terrace::Graph shared = terrace::share_in_place(*graph), scheduled = terrace::schedule(shared);
  require(terrace::validate(shared).ok() && terrace::validate(scheduled).ok());
  require(terrace::Lifetimes(shared).peak_bytes() <= peak);
  require(terrace::Lifetimes(scheduled).peak_bytes() <= peak);
  return 0;
}
