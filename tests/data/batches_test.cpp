// SPDX-License-Identifier: Apache-2.0
#include "data/batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "base/random.hpp"

namespace terrace {
namespace {

// Pictures of two pixels: the first is the picture's number.
LabelledImages numbered(std::size_t count) {
  LabelledImages data{1, 2, {}, {}};
  for (std::size_t i = 0; i < count; ++i) {
    data.pixels.push_back(static_cast<std::uint8_t>(i));
    data.pixels.push_back(255);
    data.labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  return data;
}

struct Batch {
  explicit Batch(std::size_t size) : images(size * 2), labels(size) {}
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  bool operator==(const Batch&) const = default;

  // Undoes the normalisation.
  std::vector<int> pictures() const {
    std::vector<int> numbers;
    for (std::size_t i = 0; i < images.size(); i += 2)
      numbers.push_back(static_cast<int>(std::lround((images[i] * 0.3530 + 0.2860) * 255)));
    return numbers;
  }
};

Batch filled(Batches& source, std::uint64_t step) {
  Batch batch(source.batch());
  source.fill(step, batch.images, batch.labels);
  return batch;
}

// The pictures of an epoch, in order.
std::vector<int> epoch_of(Batches& source, std::uint64_t epoch) {
  std::vector<int> seen;
  for (std::uint64_t i = 0; i < source.steps_per_epoch(); ++i) {
    const auto pictures = filled(source, epoch * source.steps_per_epoch() + i).pictures();
    seen.insert(seen.end(), pictures.begin(), pictures.end());
  }
  return seen;
}

TEST(Batches, NormalisesPixels) {
  LabelledImages data{1, 3, {0, 128, 255}, {4}};
  Batches source(data, 1, 0);
  std::vector<float> images(3);
  std::vector<std::int32_t> labels(1);
  source.fill(0, images, labels);
  EXPECT_FLOAT_EQ(images[0], -0.2860f / 0.3530f);
  EXPECT_FLOAT_EQ(images[1], (128 / 255.0f - 0.2860f) / 0.3530f);
  EXPECT_FLOAT_EQ(images[2], (1 - 0.2860f) / 0.3530f);
  EXPECT_EQ(labels[0], 4);
}

TEST(Batches, AnEpochHoldsEveryPictureOnceWithItsLabel) {
  const LabelledImages data = numbered(120);
  Batches source(data, 8, 3);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    const auto seen = epoch_of(source, epoch);
    EXPECT_EQ(seen.size(), 120u);
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 120u);
  }
  const Batch batch = filled(source, 17);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(batch.labels[i], batch.pictures()[i] % 10);
}

TEST(Batches, DropsThePartialBatchOfAnEpoch) {
  const LabelledImages data = numbered(23);
  Batches source(data, 5, 1);
  EXPECT_EQ(source.steps_per_epoch(), 4u);
  const auto first = epoch_of(source, 0), second = epoch_of(source, 1);
  EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 20u);
  EXPECT_EQ(std::set<int>(second.begin(), second.end()).size(), 20u);
}

TEST(Batches, EpochsAndSeedsDifferInOrder) {
  const LabelledImages data = numbered(100);
  Batches source(data, 10, 1), other(data, 10, 2);
  EXPECT_NE(epoch_of(source, 0), epoch_of(source, 1));
  EXPECT_NE(epoch_of(source, 0), epoch_of(other, 0));
}

TEST(Batches, AStepIsTheSameWheneverItIsAskedFor) {
  const LabelledImages data = numbered(50);
  Batches forward(data, 7, 42), backward(data, 7, 42);
  std::vector<Batch> expected;
  for (std::uint64_t step = 0; step < 40; ++step) expected.push_back(filled(forward, step));
  for (std::uint64_t step = 40; step-- > 0;) EXPECT_EQ(filled(backward, step), expected[step]) << step;
}

TEST(Batches, TheOrderIsTheSameOnEveryPlatform) {
  const LabelledImages data = numbered(10);
  Batches source(data, 10, 2026);
  EXPECT_EQ(epoch_of(source, 0), (std::vector<int>{6, 7, 8, 2, 9, 5, 3, 4, 1, 0}));
  EXPECT_EQ(epoch_of(source, 1), (std::vector<int>{5, 3, 7, 4, 1, 0, 6, 9, 8, 2}));
}

TEST(Batches, EveryPictureIsAsLikelyInEveryPlace) {
  const LabelledImages data = numbered(5);
  Batches source(data, 5, 11);
  int counts[5][5] = {};
  constexpr int kEpochs = 20'000;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto seen = epoch_of(source, epoch);
    for (std::size_t place = 0; place < 5; ++place) ++counts[place][seen[place]];
  }
  // 4000 each, with a standard deviation below 57: five of them.
  for (const auto& place : counts)
    for (const int count : place) EXPECT_NEAR(count, kEpochs / 5, 285);
}

TEST(Batches, GivesThePicturesAsStoredToTheLastOne) {
  const LabelledImages data = numbered(23);
  const Batches source(data, 10, 1);
  Batch batch(10);
  EXPECT_EQ(source.fill_in_order(10, batch.images, batch.labels), 10u);
  EXPECT_EQ(batch.pictures(), (std::vector<int>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(source.fill_in_order(20, batch.images, batch.labels), 3u);
  EXPECT_EQ(batch.pictures()[2], 22);
  EXPECT_EQ(batch.pictures()[3], 13) << "what is not there changes nothing";
  EXPECT_EQ(source.fill_in_order(23, batch.images, batch.labels), 0u);
  EXPECT_EQ(source.fill_in_order(1000, batch.images, batch.labels), 0u);
}

TEST(Batches, RejectsWrongCalls) {
  const LabelledImages data = numbered(10);
  EXPECT_THROW(Batches(data, 0, 1), std::logic_error);
  EXPECT_THROW(Batches(data, 11, 1), std::logic_error);
  Batches source(data, 5, 1);
  std::vector<float> images(10);
  std::vector<std::int32_t> labels(5);
  EXPECT_THROW(source.fill(0, std::span(images).first(9), labels), std::logic_error);
  EXPECT_THROW(source.fill(0, images, std::span(labels).first(4)), std::logic_error);
}

TEST(SplitMix, GivesThePublishedNumbers) {
  // The first outputs for the seed 1234567, as other implementations print them.
  SplitMix random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(SplitMix, StaysBelowItsBoundAndReachesIt) {
  SplitMix random(5);
  for (const std::uint64_t bound : {1u, 2u, 3u, 4u, 5u, 7u, 8u}) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) seen.insert(random.below(bound));
    EXPECT_EQ(seen.size(), bound);
    EXPECT_EQ(*seen.rbegin(), bound - 1);
  }
  EXPECT_EQ(SplitMix(5).below(~std::uint64_t{0}), SplitMix(5).next());
}

}  // namespace
}  // namespace terrace
