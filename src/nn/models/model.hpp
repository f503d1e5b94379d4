// The table behind the zoo: what each name stands for.
#pragma once

#include <span>
#include <variant>

#include "nn/models/training.hpp"
#include "terrace/models.hpp"

namespace terrace::zoo {

/// Square images in, one logit per class out.
struct Classifier {
  std::int64_t channels, side;
  Value (*logits)(Net&, Value image);
};

/// Tokens in, logits over the vocabulary for each of them out.
struct LanguageModel {
  enum class Order : std::uint8_t { batch_first, time_first };
  Order order;
  std::int64_t sequence;  ///< as published
  std::int64_t longest;   ///< 0: no limit
  Value (*logits)(Net&, Value tokens);
};

/// Whatever is no single loss.
struct OwnStep {
  Graph (*build)(std::string_view name, const Step&);
};

struct Model {
  ModelInfo info;
  Optimizer optimizer;
  std::variant<Classifier, LanguageModel, OwnStep> kind;
};

/// In the order they are listed.
std::span<const Model> table();

}  // namespace terrace::zoo
