// Batches provides shuffled batches of labelled images for training.
//
// A step's batch is a function of the seed and the step's number alone, on every platform: a run that is
// resumed, or repeated under another plan, sees the same data. Every epoch has an order of its own; the
// remainder at its end, less than a batch, is dropped. It borrows the images and is used by one thread at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/fashion_mnist.hpp"

namespace terrace {

class Batches {
 public:
  /// pre: 0 < batch <= data.count(), and `data` outlives this
  Batches(const LabelledImages& data, std::size_t batch, std::uint64_t seed);

  std::size_t batch() const noexcept { return batch_; }
  std::uint64_t steps_per_epoch() const noexcept { return data_->count() / batch_; }

  /// Writes the normalised images of a step and their labels. pre: images.size() == batch() *
  /// data.pixels_per_image() and labels.size() == batch()
  void fill(std::uint64_t step, std::span<float> images, std::span<std::int32_t> labels);

  /// Writes the images from number `first` on in the order of the dataset, at most a batch of them, and
  /// returns how many there were. pre: as in fill()
  std::size_t fill_in_order(std::size_t first, std::span<float> images, std::span<std::int32_t> labels) const;

 private:
  void check_room(std::span<float> images, std::span<std::int32_t> labels) const;
  void copy(std::size_t picture, float* image, std::int32_t& label) const;
  void shuffle(std::uint64_t epoch);

  const LabelledImages* data_;
  std::size_t batch_;
  std::uint64_t seed_;
  std::array<float, 256> normalised_;      // the normalised value of each pixel value
  std::optional<std::uint64_t> shuffled_;  // the epoch for which order_ was shuffled
  std::vector<std::uint32_t> order_;
};

}  // namespace terrace
