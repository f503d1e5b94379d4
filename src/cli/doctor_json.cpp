// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_json.hpp"

#include <nlohmann/json.hpp>

#include "terrace/version.hpp"

namespace terrace::cli {
namespace {

using Json = nlohmann::json;

Json optional_bytes(const std::optional<Bytes>& amount) { return amount ? Json(amount->count) : Json(); }

Json cores(const Cores& cores) {
  return {{"online", cores.online},
          {"allowed", cores.allowed},
          {"quota", cores.quota ? Json(*cores.quota) : Json()},
          {"usable", cores.usable()}};
}

Json instructions_json(const InstructionSets& sets) {
  return {{"sse4.2", sets.sse42},
          {"avx2", sets.avx2},
          {"avx512f", sets.avx512f},
          {"avx512_bf16", sets.avx512_bf16},
          {"amx_advertised", sets.amx_advertised},
          {"amx_works", sets.amx_works}};
}

Json memory_json(const Computer& computer) {
  return {{"total_bytes", computer.memory.total.count},
          {"available_bytes", computer.memory.available.count},
          {"usable_bytes", computer.usable_memory.available.count},
          {"limited_by", computer.usable_memory.source}};
}

Json nodes_json(const std::vector<NumaNode>& nodes) {
  Json list = Json::array();
  for (const NumaNode& node : nodes) {
    list.push_back({{"node", node.node}, {"memory_bytes", node.memory.count}, {"cores", node.cores}});
  }
  return list;
}

Json huge_pages_json(const HugePages& pages) {
  return {{"transparent", pages.transparent},
          {"page_bytes", pages.page.count},
          {"pool_total", pages.pool_total},
          {"pool_free", pages.pool_free}};
}

Json disk_json(const Computer& computer) {
  Json disk = {{"path", computer.folder.native()},
               {"free_bytes", computer.storage ? Json(computer.storage->free_space.count) : Json()},
               {"direct_io", computer.storage && computer.storage->direct_error == 0},
               {"map_sync", computer.storage && computer.storage->map_sync},
               {"measured_bytes", nullptr},
               {"read_bytes_per_second", nullptr},
               {"write_bytes_per_second", nullptr}};
  if (computer.disk) {
    disk["measured_bytes"] = computer.disk->amount.count;
    disk["read_bytes_per_second"] = computer.disk->read.value;
    disk["write_bytes_per_second"] = computer.disk->write.value;
  }
  return disk;
}

Json list_of(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks) {
    list.push_back({{"name", check.name},
                    {"status", to_string(check.status)},
                    {"found", check.found},
                    {"advice", check.advice}});
  }
  return list;
}

}  // namespace

Json to_json(const Computer& computer, const std::vector<Check>& checks) {
  return {{"version", TERRACE_VERSION},
          {"checks", list_of(checks)},
          {"cores", cores(computer.cores)},
          {"instructions", instructions_json(computer.instructions)},
          {"memory", memory_json(computer)},
          {"numa_nodes", nodes_json(computer.nodes)},
          {"huge_pages", huge_pages_json(computer.huge_pages)},
          {"io_uring", computer.uring.built && computer.uring.error == 0},
          {"memlock_bytes", optional_bytes(computer.memlock)},
          {"disk", disk_json(computer)},
          {"dax", {{"devices", computer.dax.devices}, {"mounts", computer.dax.mounts}}},
          {"gpus", computer.gpus}};
}

}  // namespace terrace::cli
