#include "data/batches.hpp"

#include <limits>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"

namespace terrace {
namespace {

// Of the training pictures, scaled to 0..1.
constexpr double kMean = 0.2860, kDeviation = 0.3530;

}  // namespace

Batches::Batches(const LabelledImages& data, std::size_t batch, std::uint64_t seed)
    : data_(&data), batch_(batch), seed_(seed), order_(data.count()) {
  check(batch > 0 && batch <= data.count(), "a batch needs between one and all of the pictures");
  check(data.count() <= std::numeric_limits<std::uint32_t>::max(), "too many pictures to number");
  check(data.pixels.size() == data.count() * data.pixels_per_image(), "pictures and labels differ in number");
  for (std::size_t value = 0; value < normalised_.size(); ++value)
    normalised_[value] = static_cast<float>((static_cast<double>(value) / 255 - kMean) / kDeviation);
}

void Batches::fill(std::uint64_t step, std::span<float> images, std::span<std::int32_t> labels) {
  const std::size_t pixels = data_->pixels_per_image();
  check(images.size() == batch_ * pixels, "the memory for pictures is not that of a batch");
  check(labels.size() == batch_, "the memory for labels is not that of a batch");
  shuffle(step / steps_per_epoch());
  const std::size_t start = step % steps_per_epoch() * batch_;
  for (std::size_t i = 0; i < batch_; ++i) {
    const std::size_t picture = order_[start + i];
    labels[i] = data_->labels[picture];
    const std::uint8_t* from = data_->pixels.data() + picture * pixels;
    for (std::size_t j = 0; j < pixels; ++j) images[i * pixels + j] = normalised_[from[j]];
  }
}

// Fisher-Yates, from the start each time: an epoch's order does not depend on the one before.
void Batches::shuffle(std::uint64_t epoch) {
  if (shuffled_ == epoch) return;
  std::iota(order_.begin(), order_.end(), 0u);
  SplitMix random(SplitMix(seed_).next() ^ epoch);
  for (std::size_t left = order_.size(); left > 1; --left)
    std::swap(order_[left - 1], order_[random.below(left)]);
  shuffled_ = epoch;
}

}  // namespace terrace
