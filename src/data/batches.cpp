#include "data/batches.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"

namespace terrace {
namespace {

// The mean and standard deviation of the training images' pixels, scaled to 0..1.
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
  check_room(images, labels);
  shuffle(step / steps_per_epoch());
  const std::size_t start = step % steps_per_epoch() * batch_;
  for (std::size_t i = 0; i < batch_; ++i)
    copy(order_[start + i], images.data() + i * data_->pixels_per_image(), labels[i]);
}

std::size_t Batches::fill_in_order(std::size_t first, std::span<float> images,
                                   std::span<std::int32_t> labels) const {
  check_room(images, labels);
  const std::size_t count = std::min(batch_, data_->count() - std::min(first, data_->count()));
  for (std::size_t i = 0; i < count; ++i)
    copy(first + i, images.data() + i * data_->pixels_per_image(), labels[i]);
  return count;
}

void Batches::check_room(std::span<float> images, std::span<std::int32_t> labels) const {
  check(images.size() == batch_ * data_->pixels_per_image(),
        "the memory for pictures is not that of a batch");
  check(labels.size() == batch_, "the memory for labels is not that of a batch");
}

void Batches::copy(std::size_t picture, float* image, std::int32_t& label) const {
  label = data_->labels[picture];
  const std::size_t pixels = data_->pixels_per_image();
  const std::uint8_t* from = data_->pixels.data() + picture * pixels;
  for (std::size_t j = 0; j < pixels; ++j) image[j] = normalised_[from[j]];
}

// Fisher-Yates starts from the identity each time, so that an epoch's order does not depend on the previous
// one.
void Batches::shuffle(std::uint64_t epoch) {
  if (shuffled_ == epoch) return;
  std::iota(order_.begin(), order_.end(), 0u);
  SplitMix random(SplitMix(seed_).next() ^ epoch);
  for (std::size_t left = order_.size(); left > 1; --left)
    std::swap(order_[left - 1], order_[random.below(left)]);
  shuffled_ = epoch;
}

}  // namespace terrace
