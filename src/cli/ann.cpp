// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "cli/ann_common.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"

namespace terrace::cli {

double since(Timer::time_point began) { return std::chrono::duration<double>(Timer::now() - began).count(); }

void row(std::string_view name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); }

void add_output(CLI::App& command, AnnOutput& output) {
  command.add_option("--json", output.json, "Writes the result to this file instead of printing it");
}

Bytes share_of(const std::string& text, Bytes all, const char* option) {
  double percent = 0;
  if (text.ends_with('%') && reads_as(std::string_view(text).substr(0, text.size() - 1), percent) &&
      percent > 0 && percent <= 100)
    return Bytes{static_cast<std::uint64_t>(std::ceil(static_cast<double>(all.count) * percent / 100))};
  const auto amount = parse_bytes(text);
  if (!text.ends_with('%') && amount && amount->count > 0) return *amount;
  throw BadInput(fmt::format("{} '{}' is no amount of memory: give one such as 2GiB, or a share such as 20%",
                             option, text));
}

nlohmann::json size_json(const ann::IndexSize& size) {
  return {{"vectors", size.vectors},
          {"nodes", size.nodes},
          {"promoted", size.promoted},
          {"removed", size.removed},
          {"marks_bytes", size.marks.count},
          {"dimension", size.dimension},
          {"fast_bytes", size.fast().count},
          {"slow_bytes", size.slow().count},
          {"fast_links_bytes", size.fast_links.count},
          {"fast_elements_bytes", size.fast_elements.count},
          {"fast_ids_bytes", size.fast_ids.count},
          {"codes_bytes", size.codes.count},
          {"searchers_bytes", size.searchers.count},
          {"cache_bytes", size.cache.count},
          {"slow_links_bytes", size.slow_links.count},
          {"slow_elements_bytes", size.slow_elements.count},
          {"slow_ids_bytes", size.slow_ids.count},
          {"slow_padding_bytes", size.slow_padding.count}};
}

void print_size(const ann::IndexSize& size) {
  row("vectors", fmt::format("{} of {} dimensions", size.vectors, size.dimension));
  row("fast", fmt::format("{}: {} nodes with links {}, vectors {}, ids {}; codes {}, searching {}, cache {}",
                          readable(size.fast()), size.promoted, readable(size.fast_links),
                          readable(size.fast_elements), readable(size.fast_ids), readable(size.codes),
                          readable(size.searchers), readable(size.cache)));
  row("slow", fmt::format("{}: {} nodes with links {}, {} vectors {}, ids {}", readable(size.slow()),
                          size.nodes, readable(size.slow_links), size.nodes - size.promoted,
                          readable(size.slow_elements), readable(size.slow_ids)));
}

void add_ann(CLI::App& app) {
  CLI::App* command = app.add_subcommand("ann", "Searches among vectors that do not fit in memory");
  command->require_subcommand(1);
  add_ann_build(*command);
  add_ann_search(*command);
  add_ann_truth(*command);
  add_ann_info(*command);
  add_ann_data(*command);
}

}  // namespace terrace::cli
