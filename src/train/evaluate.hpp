// How well a trained network does on pictures it has not seen.
#pragma once

#include <string_view>

#include "data/fashion_mnist.hpp"
#include "terrace/trainer.hpp"

namespace terrace {

/// The share of `pictures` that a model of the zoo, with the weights and running statistics of `trained`,
/// classifies rightly. Takes the memory of an inference graph; fails where that is not there. pre: `trained`
/// trains that model on such pictures
Result<double> accuracy(std::string_view model, const Trainer& trained, const LabelledImages& pictures);

}  // namespace terrace
