// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate.hpp"

#include <algorithm>

#include "data/batches.hpp"
#include "math/accuracy.hpp"
#include "terrace/models.hpp"

namespace terrace {
namespace {

/// Large enough to keep all threads busy, small beside any training batch's memory.
constexpr std::size_t kBatch = 100;

void copy_weights(const Trainer& from, Trainer& to) {
  for (const Tensor& tensor : to.program().graph.tensors) {
    if (tensor.persistent && tensor.type == DataType::f32) to.write(tensor.name, from.read(tensor.name));
  }
}

Result<Trainer> inference(std::string_view model, const Trainer& trained, std::size_t batch) {
  auto graph = build_inference(model, {.batch = static_cast<std::int64_t>(batch)});
  if (!graph) return graph.error();
  auto program = compile(*graph, trained.program().threads);
  if (!program) return program.error();
  auto network = Trainer::start(*std::move(program), {});
  if (network) copy_weights(trained, *network);
  return network;
}

}  // namespace

Result<double> accuracy(std::string_view model, const Trainer& trained, const LabelledImages& pictures) {
  const Batches batches(pictures, std::min(kBatch, pictures.count()), 0);
  auto network = inference(model, trained, batches.batch());
  if (!network) return network.error();
  std::vector<std::int32_t> labels(batches.batch());
  std::int64_t correct = 0;
  for (std::size_t first = 0; first < pictures.count(); first += batches.batch()) {
    const std::size_t count = batches.fill_in_order(first, network->input("image"), labels);
    network->step();
    const std::vector<float> logits = network->result(0);
    correct += math::count_correct(logits.data(), labels.data(),
                                   {static_cast<std::int64_t>(count), kFashionMnistClasses});
  }
  return static_cast<double>(correct) / static_cast<double>(pictures.count());
}

}  // namespace terrace
