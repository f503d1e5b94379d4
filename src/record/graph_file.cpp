// SPDX-License-Identifier: Apache-2.0
#include "record/graph_file.hpp"

#include "base/text_file.hpp"
#include "terrace/graph_json.hpp"

namespace terrace {

Result<Graph> read_graph(const std::filesystem::path& path) { return parse_file(path, graph_from_json); }

void write_graph(const Graph& graph, const std::filesystem::path& path) {
  write_text(path, to_json_text(graph));
}

}  // namespace terrace
