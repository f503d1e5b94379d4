// SPDX-License-Identifier: Apache-2.0
// The program with a cache folder of its own, in which this computer is already measured: what it says there
// is made up, so that no test depends on a calibration.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "profile/computer_name.hpp"
#include "profile/this_machine.hpp"
#include "record/graph_file.hpp"
#include "support/long_tests.hpp"
#include "terrace/net.hpp"
#include "terrace/workload.hpp"

namespace terrace::test {

/// DRAM and a disk that open here.
inline Machine made_up_machine(const TierSpec& slow) {
  using namespace literals;
  Machine machine;
  machine.name = "this";
  machine.source = "made up";
  machine.compute = {computer_name().processor, 2, 1e11};
  MachineTier dram, disk;
  dram.name = "dram";
  dram.capacity = 1_GiB;
  dram.read = dram.write = {10e9};
  dram.granularity = 4_KiB;
  dram.spec = "dram:1GiB";
  disk.name = "file";
  disk.capacity = 1_GiB;
  disk.addressable = false;
  disk.read = disk.write = {2e9};
  disk.granularity = 4_KiB;
  disk.spec = to_string(slow);
  machine.tiers = {dram, disk};
  machine.links = {{TierId{0}, TierId{1}, {{1_MiB, {2e9}}}, 0.5, 0.2, 1},
                   {TierId{1}, TierId{0}, {{1_MiB, {2e9}}}, 0.5, 0.2, 1}};
  return machine;
}

class PreparedProgram : public Program {
 protected:
  using Json = nlohmann::json;

  PreparedProgram() {
    setenv("XDG_CACHE_HOME", (tree_.path() / "cache").c_str(), 1);
    prepare(default_slow_tier().value());
  }
  /// Whatever is measured with this slow tier and one thread is known already. One: what kernels need differs
  /// by computer as little as can be.
  void prepare(const TierSpec& slow) const {
    CalibrateOptions options;
    options.slow = {slow};
    options.threads = 1;
    keep_machine(made_up_machine(slow), machine_cache_file(machine_cache_folder().value(), options)).value();
  }
  /// Where nobody asks for direct I/O, so that any file system will do.
  TierSpec file_tier(const std::string& name, Bytes capacity) const {
    TierSpec spec;
    spec.kind = TierKind::file;
    spec.path = work() / name;
    spec.capacity = capacity;
    spec.buffered = true;
    return spec;
  }
  /// A model whose kernels are measured in a second: those of mlp take several.
  std::string model_to_measure() const {
    if (long_tests()) return "mlp --batch 2";
    Net net("layer");
    const Value x = net.relu(net.linear("fc", net.input("x", {2, 16}), 8));
    net.train(net.cross_entropy(x, net.input("label", {2}, DataType::i32)), {.momentum = 0});
    write_graph(std::move(net).finish(), work() / "layer.json");
    return "layer.json";
  }
  Json result(const std::string& name = "result.json") const {
    return Json::parse(tree_.read("work/" + name));
  }
  /// Runs a command that succeeds and returns its JSON.
  Json json_of(const std::string& command) {
    const Outcome outcome = run(command + " --json result.json");
    EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
    return outcome.code == 0 ? result() : Json();
  }
};

}  // namespace terrace::test
