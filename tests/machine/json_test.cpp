// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/temporary_tree.hpp"
#include "machine/machines.hpp"
#include "terrace/machine_file.hpp"

namespace terrace {
namespace {

using namespace literals;

std::string refusal(const std::string& text) {
  const auto machine = machine_from_json(text);
  return machine.ok() ? "accepted" : machine.error().message;
}

/// The small machine's text in which `where` (a JSON pointer) holds `value` instead.
std::string altered(const std::string& where, const std::string& value) {
  auto json = nlohmann::json::parse(to_json(test::small_machine()));
  json[nlohmann::json::json_pointer(where)] = nlohmann::json::parse(value);
  return json.dump();
}

std::string without(const std::string& parent, const std::string& key) {
  auto json = nlohmann::json::parse(to_json(test::small_machine()));
  json[nlohmann::json::json_pointer(parent)].erase(key);
  return json.dump();
}

struct Case {
  const char *where, *value, *message;
};

TEST(MachineJson, ReadsBackWhatItWrote) {
  test::RandomMachines random(1);
  std::size_t links = 0, priced = 0;
  for (int i = 0; i < 500; ++i) {
    const Machine machine = random.next();
    const auto again = machine_from_json(to_json(machine));
    ASSERT_TRUE(again.ok()) << again.error().message;
    ASSERT_EQ(*again, machine) << to_json(machine);
    links += machine.links.size();
    priced += machine.tiers[0].price ? 1 : 0;
  }
  EXPECT_GT(links, 500U);
  EXPECT_GT(priced, 100U);
}

TEST(MachineJson, HasStableKeys) {
  const auto json = nlohmann::ordered_json::parse(to_json(test::small_machine()));
  const auto keys = [](const nlohmann::ordered_json& object) {
    std::string text;
    for (const auto& [key, value] : object.items()) text += key + " ";
    return text;
  };
  EXPECT_EQ(keys(json), "format version name source compute tiers links ");
  EXPECT_EQ(keys(json["compute"]), "name threads flops_per_second ");
  EXPECT_EQ(keys(json["tiers"][0]), "name capacity addressable read write latency granularity price spec ");
  EXPECT_EQ(keys(json["links"][0]), "from to rates both_ways compute_loss threads while_computing ");
  EXPECT_EQ(keys(json["links"][0]["rates"][0]), "size rate ");
}

TEST(MachineJson, TakesEnginesThatReachTiersInAnyOrder) {
  const auto machine = machine_from_json(
      altered("/engines", R"([{"name": "beside", "flops_per_second": 1e9, "reaches": ["disk", "dram"]}])"));
  ASSERT_TRUE(machine.ok()) << machine.error().message;
  EXPECT_EQ(machine->further_engines, (std::vector<Engine>{{{"beside", 1, 1e9, {}}, {{0}, {1}}}}));
}

TEST(MachineJson, TakesTextWithUnitsAndLeavesDefaultsOut) {
  const auto machine = machine_from_json(R"({"format": "terrace-machine", "version": 1,
    "compute": {"flops_per_second": 1e12},
    "tiers": [{"name": "fast", "capacity": "192GB", "read": "104GB/s", "write": "80GB/s", "latency": "79ns"},
              {"name": "slow", "capacity": 768000000000, "read": 39e9, "write": 13e9}],
    "links": [{"from": "slow", "to": "fast", "rates": [{"size": "1MiB", "rate": "39GB/s"}]}]})");
  ASSERT_TRUE(machine.ok()) << machine.error().message;
  EXPECT_EQ(machine->tiers[0].capacity, 192_GB);
  EXPECT_DOUBLE_EQ(machine->tiers[0].read.value, 104e9);
  EXPECT_DOUBLE_EQ(machine->tiers[0].latency.count(), 79e-9);
  EXPECT_EQ(machine->tiers[1].granularity, 64_B);
  EXPECT_TRUE(machine->tiers[1].addressable);
  EXPECT_FALSE(machine->tiers[1].price);
  EXPECT_EQ(machine->links[0].from, TierId{1});
  EXPECT_EQ(machine->links[0].rates[0].size, 1_MiB);
  EXPECT_EQ(machine->links[0].threads, 1U);
}

TEST(MachineJson, ReadsTheExampleOfItsDocument) {
  std::ifstream in(TERRACE_TESTS "/../docs/formats/machine.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string fence = "```json\n";
  const std::size_t begin = text.find(fence) + fence.size(), end = text.find("```", begin);
  const auto machine = machine_from_json(text.substr(begin, end - begin));
  ASSERT_TRUE(machine.ok()) << machine.error().message;
  EXPECT_EQ(machine->tiers[1].spec, "file:/data/spill:2TB");
  for (const MachineInfo& preset : machine_presets())
    EXPECT_NE(text.find("| `" + preset.name + "` |"), std::string::npos) << preset.name;
}

TEST(MachineJson, NamesThePlaceOfEveryMistake) {
  ASSERT_EQ(refusal(altered("/name", "\"x\"")), "accepted");
  const std::vector<Case> cases{
      {"/format", "\"terrace-graph\"", "this is no machine: the key 'format' must be 'terrace-machine'"},
      {"/version", "2", "the key 'version' must be 1, the one this build reads"},
      {"/nmae", "1",
       "unknown key 'nmae'; there are format, version, name, source, compute, tiers, links, "
       "engines"},
      {"/name", "1", "name: a string is wanted, not number"},
      {"/compute", "[]", "compute: an object is wanted, not array"},
      {"/compute/cores", "2",
       "compute: unknown key 'cores'; there are name, threads, flops_per_second, by_type"},
      {"/compute/by_type", R"([{"type": "f8", "flops_per_second": 1}])",
       "compute.by_type[0].type: 'f8' is not the name of a type"},
      {"/engines", R"([{"name": "e", "flops_per_second": 1}])", "engines[0]: the key 'reaches' is missing"},
      {"/engines", R"([{"name": "e", "flops_per_second": 1, "reaches": ["dram", "tape"]}])",
       "engines[0].reaches[1]: there is no tier named 'tape'"},
      {"/engines", R"([{"name": "e", "flops_per_second": 1, "reaches": []}])",
       "the machine 'small' is none: engine 'e': it reaches no tier"},
      {"/compute/threads", "0", "compute.threads: a whole number from 1 to 4294967295 is wanted, not 0"},
      {"/compute/flops_per_second", "\"fast\"", "compute.flops_per_second: a number is wanted, not string"},
      {"/tiers", "{}", "tiers: an array is wanted, not object"},
      {"/tiers/1", "7", "tiers[1]: an object is wanted, not number"},
      {"/tiers/1/kind", "1",
       "tiers[1]: unknown key 'kind'; there are name, capacity, addressable, read, write, tiled_write, "
       "latency, granularity, price, spec"},
      {"/tiers/0/capacity", "-1",
       "tiers[0].capacity: a whole number from 0 to 9223372036854775807 is wanted, not -1"},
      {"/tiers/0/addressable", "1", "tiers[0].addressable: true or false is wanted, not number"},
      {"/tiers/0/read", "[]", "tiers[0].read: a number is wanted, not array"},
      {"/tiers/0/latency", "false", "tiers[0].latency: a number is wanted, not boolean"},
      {"/tiers/0/price", "\"1\"", "tiers[0].price: a number is wanted, not string"},
      {"/links/0/from", "\"tape\"", "links[0].from: there is no tier named 'tape'"},
      {"/links/1/to", "0", "links[1].to: a string is wanted, not number"},
      {"/links/0/rates", "3", "links[0].rates: an array is wanted, not number"},
      {"/links/0/rates/1/size", "1.5",
       "links[0].rates[1].size: a whole number from 0 to 9223372036854775807 is wanted, not 1.5"},
      {"/links/0/rates/1/time", "1", "links[0].rates[1]: unknown key 'time'; there are size, rate"},
      {"/links/0/both_ways", "true", "links[0].both_ways: a number is wanted, not boolean"},
      {"/links/0/rates", "[]",
       "the machine 'small' is none: the link from 'dram' to 'disk': it has no rates"},
  };
  for (const Case& wrong : cases)
    EXPECT_EQ(refusal(altered(wrong.where, wrong.value)),
              std::string("cannot read the machine: ") + wrong.message);
}

TEST(MachineJson, SaysWhatAUnitMightBe) {
  for (const char* where : {"/tiers/0/capacity", "/tiers/0/read", "/tiers/0/latency"}) {
    const std::string message = refusal(altered(where, "\"12 parsecs\""));
    EXPECT_NE(message.find("12 parsecs"), std::string::npos) << message;
    EXPECT_NE(message.find("tiers[0]."), std::string::npos) << message;
  }
}

TEST(MachineJson, NamesTheKeyThatIsMissing) {
  const std::vector<std::array<std::string, 3>> needed{
      {"", "compute", "the key 'compute' is missing"},
      {"", "tiers", "the key 'tiers' is missing"},
      {"/compute", "flops_per_second", "compute: the key 'flops_per_second' is missing"},
      {"/tiers/1", "name", "tiers[1]: the key 'name' is missing"},
      {"/tiers/1", "capacity", "tiers[1]: the key 'capacity' is missing"},
      {"/tiers/1", "read", "tiers[1]: the key 'read' is missing"},
      {"/tiers/1", "write", "tiers[1]: the key 'write' is missing"},
      {"/links/0", "from", "links[0]: the key 'from' is missing"},
      {"/links/0", "rates", "links[0]: the key 'rates' is missing"},
      {"/links/0/rates/0", "rate", "links[0].rates[0]: the key 'rate' is missing"}};
  for (const auto& [parent, key, message] : needed)
    EXPECT_EQ(refusal(without(parent, key)), "cannot read the machine: " + message);
  EXPECT_EQ(refusal("[]"), "cannot read the machine: an object is wanted, not array");
  EXPECT_EQ(refusal("{"), "cannot read the machine: line 1, column 2: the text is not JSON here");
}

TEST(MachineJson, IsOnlyWrittenOfAMachineThatIsOne) {
  Machine machine = test::small_machine();
  machine.tiers[0].name.clear();
  EXPECT_THROW(static_cast<void>(to_json(machine)), std::logic_error);
}

TEST(MachineFile, KeepsAMachineAndReplacesTheOneBefore) {
  const test::TemporaryTree tree;
  const auto path = tree.path() / "machine.json";
  Machine machine = test::small_machine();
  write_machine(machine, path);
  EXPECT_EQ(read_machine(path).value(), machine);
  machine.compute.threads = 9;
  write_machine(machine, path);
  EXPECT_EQ(read_machine(path).value(), machine);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(tree.path()), {}), 1) << "nothing else stays";
}

TEST(MachineFile, NamesTheFileThatIsNone) {
  const test::TemporaryTree tree;
  tree.write("wrong.json", "{}");
  EXPECT_EQ(read_machine(tree.path() / "wrong.json").error().message,
            (tree.path() / "wrong.json").string() +
                ": cannot read the machine: this is no machine: the key 'format' must be 'terrace-machine'");
  EXPECT_NE(read_machine(tree.path() / "none.json").error().message.find("none.json"), std::string::npos);
  EXPECT_THROW(write_machine(test::small_machine(), tree.path() / "no" / "folder.json"), ResultError);
}

}  // namespace
}  // namespace terrace
