// SPDX-License-Identifier: Apache-2.0
// The keys of docs/formats/graph.md, for the side that writes and the side that reads.
#pragma once

#include <string_view>
#include <vector>

namespace terrace::graph_keys {

inline constexpr std::string_view kFormat = "terrace-graph";
inline constexpr int kVersion = 1;

inline const std::vector<std::string_view> kGraph{"format",  "version", "name",   "layers",
                                                  "tensors", "kernels", "results"};
inline const std::vector<std::string_view> kTensor{"name",  "shape",  "type",    "kind",   "persistent",
                                                   "bytes", "layout", "initial", "part_of"};
inline const std::vector<std::string_view> kPartOf{"name", "first", "rows"};
inline const std::vector<std::string_view> kInitial{"kind", "a", "b"};
inline const std::vector<std::string_view> kKernel{"name",    "operation", "attributes", "inputs",
                                                   "outputs", "workspace", "in_place",   "flops",
                                                   "layer",   "phase",     "variants"};
inline const std::vector<std::string_view> kOperand{"tensor", "shape", "touched", "layout"};
inline const std::vector<std::string_view> kVariant{"name", "workspace", "time"};

}  // namespace terrace::graph_keys
