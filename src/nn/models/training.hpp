// What a training step of every model is made of: its parts, their losses, the updates.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "terrace/networks.hpp"

namespace terrace::zoo {

/// A step with all its numbers settled. pre: parts divides batch
struct Step {
  std::int64_t batch = 1;
  std::int64_t sequence = 0;  ///< 0: the model has none
  std::int64_t parts = 1;
  Optimizer optimizer{};
};

/// The share of a batch that is worked on at once.
struct Part {
  std::int64_t batch = 1, sequence = 0;
  float weight = 1;                      ///< of its loss
  std::optional<std::int64_t> number{};  ///< none: it is the whole batch

  /// `image`, or `image.2` in the third part
  std::string name(std::string_view stem) const;
};

std::vector<Part> parts_of(const Step& step);

/// Adds up to `sum`, which starts empty.
void accumulate(Net& net, std::optional<Gradients>& sum, const Gradients& more);

/// Gives the graph's results these names, in order.
void name_results(Graph& graph, const std::vector<std::string>& names);

/// One loss per part, forward and backward for one after the other, then all updates.
Graph training_graph(std::string_view name, const Step& step,
                     const std::function<Value(Net&, const Part&)>& loss);

/// A discriminator's step on real and on generated images, its update, and a generator's step through the
/// discriminator as it is now.
Graph dcgan_graph(std::string_view name, const Step& step, const networks::DcganOptions& options);

}  // namespace terrace::zoo
