// SPDX-License-Identifier: Apache-2.0
// Graphs as text: the format of docs/formats/graph.md, for files and for graphs that come from elsewhere.
#pragma once

#include <string>
#include <string_view>

#include "terrace/graph.hpp"

namespace terrace {

/// One line per tensor and kernel; the same graph gives the same text. pre: validate(graph), names are UTF-8
std::string to_json_text(const Graph& graph);

/// The graph a text means: valid, and equal to the one it was written from. Anything else is refused with a
/// sentence that names the place, such as `kernels[3].inputs[0].tensor`.
Result<Graph> graph_from_json(std::string_view text);

}  // namespace terrace
