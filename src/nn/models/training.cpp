#include "nn/models/training.hpp"

#include "base/check.hpp"

namespace terrace::zoo {

std::string Part::name(std::string_view stem) const {
  return std::string(stem) + (number ? "." + std::to_string(*number) : "");
}

std::vector<Part> parts_of(const Step& step) {
  check(step.parts > 0 && step.batch % step.parts == 0, "parts divide the batch");
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < step.parts; ++i) {
    parts.push_back({step.batch / step.parts, step.sequence, 1 / static_cast<float>(step.parts), {}});
    if (step.parts > 1) parts.back().number = i;
  }
  return parts;
}

void accumulate(Net& net, std::optional<Gradients>& sum, const Gradients& more) {
  sum = sum ? net.accumulate(*sum, more) : more;
}

void name_results(Graph& graph, const std::vector<std::string>& names) {
  check(graph.results.size() == names.size(), "every result has a name");
  for (std::size_t i = 0; i < names.size(); ++i) graph[graph.results[i]].name = names[i];
}

Graph training_graph(std::string_view name, const Step& step,
                     const std::function<Value(Net&, const Part&)>& loss) {
  Net net{std::string(name)};
  std::optional<Gradients> sum;
  std::vector<std::string> results;
  for (const Part& part : parts_of(step)) {
    accumulate(net, sum, net.backward({loss(net, part)}));
    results.push_back(part.name("loss"));
  }
  net.update(*sum, step.optimizer);
  Graph graph = std::move(net).finish();
  name_results(graph, results);
  return graph;
}

}  // namespace terrace::zoo
