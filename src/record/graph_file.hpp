// Graphs in files of their own, in the format of docs/formats/graph.md.
#pragma once

#include <filesystem>

#include "terrace/graph.hpp"

namespace terrace {

/// Fails with one sentence that begins with the path where there is no such file or it holds no graph.
Result<Graph> read_graph(const std::filesystem::path& path);
/// Written atomically. Throws ResultError where the path cannot be written to, EnvironmentError where the
/// disk is full or fails. pre: validate(graph), names are UTF-8
void write_graph(const Graph& graph, const std::filesystem::path& path);

}  // namespace terrace
