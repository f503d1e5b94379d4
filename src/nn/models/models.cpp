#include "terrace/models.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/similar.hpp"
#include "nn/models/model.hpp"

namespace terrace {
namespace {

using namespace zoo;

/// Beyond it sizes in bytes would no longer fit their type.
constexpr std::int64_t kLargestBatch = 1 << 20;
constexpr std::int64_t kLongestSequence = 1 << 16;

Error wrong(std::string sentence) { return {ErrorCode::invalid_argument, std::move(sentence)}; }

Error unknown(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Model& model : table()) names.push_back(model.info.name);
  const auto close = similar(name, names);
  if (!close.empty()) {
    return wrong(fmt::format("there is no model '{}': did you mean {}?", name, enumerated(close, "or")));
  }
  return wrong(fmt::format("there is no model '{}': the models are {}", name, enumerated(names)));
}

const Model* find(std::string_view name) {
  const auto models = table();
  const auto found =
      std::find_if(models.begin(), models.end(), [&](const Model& model) { return model.info.name == name; });
  return found == models.end() ? nullptr : &*found;
}

Result<std::int64_t> settle_sequence(const Model& model, std::optional<std::int64_t> asked) {
  const auto* language = std::get_if<LanguageModel>(&model.kind);
  if (language == nullptr) {
    if (!asked) return 0;
    return wrong(fmt::format("{} has no sequence: leave its length out", model.info.name));
  }
  const std::int64_t longest = language->longest > 0 ? language->longest : kLongestSequence;
  const std::int64_t length = asked.value_or(language->sequence);
  if (length >= 1 && length <= longest) return length;
  return wrong(
      fmt::format("a sequence of {} does not fit {}: choose 1 to {}", length, model.info.name, longest));
}

Result<Step> settle(const Model& model, const ModelOptions& options) {
  const std::int64_t batch = options.batch.value_or(model.info.batch);
  if (batch < 1 || batch > kLargestBatch) {
    return wrong(fmt::format("a batch of {} for {} makes no graph: choose 1 to {}", batch, model.info.name,
                             kLargestBatch));
  }
  if (options.micro_batches < 1 || batch % options.micro_batches != 0) {
    return wrong(
        fmt::format("a batch of {} for {} cannot be split into {} equal parts: choose a divisor of {}", batch,
                    model.info.name, options.micro_batches, batch));
  }
  const auto sequence = settle_sequence(model, options.sequence);
  if (!sequence) return sequence.error();
  return Step{batch, *sequence, options.micro_batches, options.optimizer.value_or(model.optimizer)};
}

Value image_of(Net& net, const Classifier& model, const Part& part) {
  return net.input(part.name("image"), {part.batch, model.channels, model.side, model.side});
}

Value loss_of(Net& net, const Classifier& model, const Part& part) {
  const Value image = image_of(net, model, part);
  const Value label = net.input(part.name("label"), {part.batch}, DataType::i32);
  return net.cross_entropy(model.logits(net, image), label, part.weight);
}

Value loss_of(Net& net, const LanguageModel& model, const Part& part) {
  const bool time_first = model.order == LanguageModel::Order::time_first;
  const Shape shape = time_first ? Shape{part.sequence, part.batch} : Shape{part.batch, part.sequence};
  const Value tokens = net.input(part.name("tokens"), shape, DataType::i32);
  const Value target = net.input(part.name("target"), shape, DataType::i32);
  return net.cross_entropy(model.logits(net, tokens), target, part.weight);
}

template <class Kind>
Graph train(const Model& model, const Kind& kind, const Step& step) {
  return training_graph(model.info.name, step,
                        [&](Net& net, const Part& part) { return loss_of(net, kind, part); });
}

Graph train(const Model& model, const OwnStep& own, const Step& step) {
  return own.build(model.info.name, step);
}

Graph infer(const Model& model, const Classifier& classifier, std::int64_t batch) {
  Net net(std::string(model.info.name), Net::Mode::inference);
  net.result(classifier.logits(net, image_of(net, classifier, {.batch = batch})));
  Graph graph = std::move(net).finish();
  name_results(graph, {"logits"});
  return graph;
}

}  // namespace

Result<Graph> build_model(std::string_view name, const ModelOptions& options) {
  const Model* model = find(name);
  if (model == nullptr) return unknown(name);
  const auto step = settle(*model, options);
  if (!step) return step.error();
  return std::visit([&](const auto& kind) { return train(*model, kind, *step); }, model->kind);
}

Result<Graph> build_inference(std::string_view name, const ModelOptions& options) {
  const Model* model = find(name);
  if (model == nullptr) return unknown(name);
  const auto* classifier = std::get_if<Classifier>(&model->kind);
  if (classifier == nullptr) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} classifies no images, so there is nothing to evaluate: train it", name)};
  }
  const auto step = settle(*model, options);
  if (!step) return step.error();
  return infer(*model, *classifier, step->batch);
}

}  // namespace terrace
