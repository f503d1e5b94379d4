// Layouts survive being written down, and tensors survive being stored in them.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "backends/cpu/instantiate.hpp"
#include "backends/cpu/lowering.hpp"
#include "backends/cpu/recipe.hpp"
#include "base/system.hpp"
#include "exec/nets.hpp"
#include "terrace/models.hpp"

namespace terrace {
namespace {

bool is_written(const std::string& layout) { return !layout.empty() && layout != "opaque"; }

std::set<std::string> layouts_of(const Graph& graph) {
  std::set<std::string> layouts;
  for (const Tensor& tensor : graph.tensors) layouts.insert(tensor.layout);
  for (const Kernel& kernel : graph.kernels) {
    for (const auto* side : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *side) layouts.insert(operand.layout);
    }
  }
  std::erase_if(layouts, [](const std::string& layout) { return !is_written(layout); });
  return layouts;
}

/// Those of the zoo that are deeper versions of others would bring no other layouts.
bool is_only_deeper(std::string_view name) {
  const std::set<std::string_view> deeper{"vgg116",    "vgg416",      "resnet152",
                                          "resnet200", "gpt2-medium", "gpt2-xl"};
  return deeper.contains(name);
}

TEST(Layout, OfEveryTensorInTheZooReadsAsItWasWritten) {
  std::set<std::string> met;
  for (const ModelInfo& model : models()) {
    if (is_only_deeper(model.name)) continue;
    const Graph graph = cpu::lower(build_model(model.name, {.batch = 2, .sequence = {}}).value(), 2).value();
    met.merge(layouts_of(graph));
    for (const Tensor& tensor : graph.tensors) {
      if (!is_written(tensor.layout)) continue;
      // The size is what oneDNN said of its own descriptor.
      const auto stored = cpu::from_layout(tensor.layout, tensor.type).get_size();
      EXPECT_EQ(stored, tensor.bytes.count) << model.name << " " << tensor.name << " " << tensor.layout;
    }
  }
  for (const std::string& layout : met) {
    const cpu::Desc desc = cpu::from_layout(layout, DataType::f32);
    EXPECT_EQ(cpu::to_layout(desc), layout);
    EXPECT_TRUE(cpu::from_layout(cpu::to_layout(desc), DataType::f32) == desc) << layout;
  }
  EXPECT_GT(met.size(), 100U);
}

/// oneDNN has Winograd's algorithm for AVX-512 only.
TEST(Implementation, OfWideSquareConvolutionsIsWinograds) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "this processor lacks AVX-512";
  const Graph graph = cpu::lower(build_model("resnet50", {.batch = 2, .sequence = {}}).value(), 2).value();
  std::map<Operation, int> winograd;
  for (const Kernel& kernel : graph.kernels) {
    if (!kernel.variants.empty() && kernel.variants[0].name.find("wino") != std::string::npos) {
      ++winograd[operation_of(kernel)];
    }
  }
  // All 3x3 convolutions but the three that halve the image.
  EXPECT_EQ(winograd, (std::map<Operation, int>{{Operation::conv2d, 13},
                                                {Operation::conv2d_backward_data, 13},
                                                {Operation::conv2d_backward_weights, 13}}));
}

TEST(Layout, OfOneDnnItselfReadsAsItWasWritten) {
  using Tag = dnnl::memory::format_tag;
  for (const Tag tag : {Tag::nchw, Tag::nhwc, Tag::nChw16c, Tag::nChw8c, Tag::OIhw16i16o, Tag::OIhw4i16o4i,
                        Tag::NChw16n16c, Tag::Acdb16a, Tag::chwn}) {
    for (const cpu::Dims& dims : {cpu::Dims{2, 17, 5, 1}, cpu::Dims{32, 48, 1, 1}, cpu::Dims{1, 1, 1, 1}}) {
      const cpu::Desc desc(dims, dnnl::memory::data_type::f32, tag);
      EXPECT_TRUE(cpu::from_layout(cpu::to_layout(desc), DataType::f32) == desc) << cpu::to_layout(desc);
    }
  }
}

std::vector<float> numbered(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

TEST(Layout, KeepsEveryElementOfATensorAndZerosBetweenThem) {
  for (const Graph& small : small_graphs()) {
    const Graph graph = cpu::lower(small, 2).value();
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      if (!tensor.persistent || tensor.type != DataType::f32) continue;
      SCOPED_TRACE(graph.name + " " + tensor.name + " " + tensor.layout);
      const auto values = numbered(static_cast<std::size_t>(tensor.shape.elements()));
      std::vector<float> stored(tensor.bytes.count / sizeof(float)), back(values.size());
      auto* const memory = reinterpret_cast<std::byte*>(stored.data());
      cpu::from_row_major(graph, {i}, reinterpret_cast<const std::byte*>(values.data()), memory);
      cpu::to_row_major(graph, {i}, memory, reinterpret_cast<std::byte*>(back.data()));
      EXPECT_EQ(back, values);
      std::sort(stored.begin(), stored.end());
      const auto padding = stored.size() - values.size();
      EXPECT_EQ(std::count(stored.begin(), stored.end(), 0.0F), static_cast<std::ptrdiff_t>(padding));
      EXPECT_TRUE(
          std::equal(values.begin(), values.end(), stored.begin() + static_cast<std::ptrdiff_t>(padding)));
    }
  }
}

/// Where the processor claims tiles that fault, no kernel may use them.
TEST(Engine, UsesOnlyInstructionsThatWork) {
  cpu::engine();
  const auto effective = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto tiles = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx) &
                     ~static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  EXPECT_EQ((effective & tiles) != 0, probe_instruction_sets().amx_works) << effective;
  EXPECT_NE(effective, 0U);
}

}  // namespace
}  // namespace terrace
