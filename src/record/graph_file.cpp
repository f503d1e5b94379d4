#include "record/graph_file.hpp"

#include <fmt/format.h>

#include "base/input_file.hpp"
#include "base/replace_file.hpp"
#include "terrace/graph_json.hpp"

namespace terrace {

Result<Graph> read_graph(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) return file.error();
  const std::vector<std::byte> bytes = file->contents();
  auto graph = graph_from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!graph) return Error{graph.error().code, fmt::format("{}: {}", path.native(), graph.error().message)};
  return graph;
}

void write_graph(const Graph& graph, const std::filesystem::path& path) {
  const std::string text = to_json_text(graph);
  const std::span<const std::byte> whole = std::as_bytes(std::span(text));
  replace_file(path, {&whole, 1}).value();
}

}  // namespace terrace
