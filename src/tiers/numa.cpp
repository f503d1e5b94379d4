#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/memory_limit.hpp"
#include "terrace/error.hpp"
#include "tiers/kinds.hpp"
#include "tiers/memory_tier.hpp"
#include "tiers/node_runs.hpp"

#ifdef TERRACE_HAS_NUMA
#include <numa.h>
#include <numaif.h>
#endif

namespace terrace {

#ifdef TERRACE_HAS_NUMA
namespace {

std::vector<unsigned> usable_nodes() {
  std::vector<unsigned> nodes;
  for (int node = 0; node <= numa_max_node(); ++node) {
    const bool allowed = numa_bitmask_isbitset(numa_all_nodes_ptr, static_cast<unsigned>(node));
    if (allowed && numa_node_size64(node, nullptr) > 0) nodes.push_back(static_cast<unsigned>(node));
  }
  return nodes;
}

// This is checked before binding, because the system kills a process that touches a bound page its node
// cannot provide.
Result<void> require_nodes(const TierDescription& description, const std::vector<NodeRun>& runs) {
  const std::vector<unsigned> usable = usable_nodes();
  for (const NodeWeight& entry : description.spec.nodes) {
    if (std::find(usable.begin(), usable.end(), entry.node) == usable.end()) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("{} asks for node {}, which does not exist or has no memory: this process may use {}",
                      description.name, entry.node, fmt::join(usable, ", "))};
    }
    const Bytes needed = share_of(entry.node, runs), available = memory_on_node(entry.node);
    if (needed > available) {
      return Error{
          ErrorCode::too_large,
          fmt::format("{} needs {} of node {}, which has {} available: ask for less or use more nodes",
                      description.name, readable(needed), entry.node, readable(available))};
    }
  }
  return require_memory(description.capacity, description.name);
}

Result<void> bind(const Mapping& mapping, const NodeRun& run, const std::string& name) {
  constexpr unsigned kWord = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask(run.node / kWord + 1);
  mask[run.node / kWord] = 1ul << run.node % kWord;
  // The kernel reads one bit less than the length it is given.
  if (mbind(mapping.data() + run.offset, run.bytes.count, MPOL_BIND, mask.data(), mask.size() * kWord + 1,
            0) == 0) {
    return {};
  }
  const int cause = errno;
  if (cause == EPERM || cause == ENOSYS) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("{} cannot be bound to node {} ({}): the container or kernel forbids mbind; allow it, "
                    "or use dram",
                    name, run.node, std::strerror(cause))};
  }
  throw EnvironmentError(
      fmt::format("binding {} of {} to node {} failed ({}): use fewer nodes or a smaller tier",
                  readable(run.bytes), name, run.node, std::strerror(cause)),
      {name, {}, run.offset, cause});
}

}  // namespace

Result<std::unique_ptr<Tier>> open_numa_tier(const TierSpec& spec) {
  if (numa_available() < 0) {
    return Error{ErrorCode::unsupported, to_string(spec) + ": this kernel has no NUMA support; use dram"};
  }
  auto description = describe(spec, kCacheLine);
  if (!description) return description.error();
  const Bytes page = spec.huge_pages ? kHugePage : page_size();
  const auto runs = node_runs(round_up(description->capacity, page), spec.nodes, page);
  if (const auto fine = require_nodes(*description, runs); !fine) return fine.error();
  Mapping mapping = map_pages(*description);
  for (const NodeRun& run : runs) {
    if (const auto bound = bind(mapping, run, description->name); !bound) return bound.error();
  }
  populate_pages(mapping, *description);
  return std::unique_ptr<Tier>(std::make_unique<MemoryTier>(std::move(*description), std::move(mapping)));
}

#else

Result<std::unique_ptr<Tier>> open_numa_tier(const TierSpec& spec) {
  return Error{
      ErrorCode::unsupported,
      to_string(spec) + ": built without NUMA support; install libnuma-dev and build again, or use dram"};
}

#endif

}  // namespace terrace
