// Operations that slide a window over images: convolutions and pooling.
#include <gtest/gtest.h>

#include "agreement/agreement.hpp"
#include "agreement/draw.hpp"
#include "support/long_tests.hpp"

namespace terrace::agreement {
namespace {

std::int64_t drawn_groups(Draw& draw, std::int64_t inputs) {
  if (draw.coin()) return 1;
  if (draw.coin()) return inputs;
  return inputs % 2 == 0 ? 2 : 1;
}

/// As many more outputs as inputs in the groups of a depthwise convolution, else any number.
std::int64_t drawn_outputs(Draw& draw, std::int64_t inputs, std::int64_t groups) {
  if (groups == 1) return draw.channels();
  return draw.of({1, 1, 2}) * inputs;
}

bool fits(const Shape& image, const Net::Conv& conv) {
  for (const std::size_t axis : {0U, 1U}) {
    const std::int64_t reach = conv.dilation[axis] * (conv.kernel[axis] - 1) + 1;
    if (image[2 + axis] + 2 * conv.padding[axis] < reach) return false;
  }
  return true;
}

Net::Conv drawn_conv(Draw& draw, std::int64_t inputs) {
  Net::Conv conv;
  for (const std::size_t axis : {0U, 1U}) {
    conv.kernel[axis] = draw.of({1, 2, 3, 3, 5, 7});
    conv.stride[axis] = draw.of({1, 1, 2, 3});
    conv.dilation[axis] = draw.of({1, 1, 1, 2});
    conv.padding[axis] = draw.between(0, conv.kernel[axis] - 1);
  }
  conv.groups = drawn_groups(draw, inputs);
  conv.bias = draw.coin();
  return conv;
}

TEST(Convolution, AgreesForAnyWindow) {
  Draw draw(1);
  for (int done = 0; done < few_or_all(14, 40) * stress_factor();) {
    const Shape image = draw.image();
    const Net::Conv conv = drawn_conv(draw, image[1]);
    if (!fits(image, conv)) continue;
    const std::int64_t outputs = drawn_outputs(draw, image[1], conv.groups);
    const Surroundings around{draw.coin(), draw.coin()};
    const bool relu = draw.coin();
    const auto build = [&](Net& net) -> std::vector<Value> {
      const Value y = net.conv2d("conv", arriving(net, image, around), outputs, conv);
      return {leaving(net, relu ? net.relu(y) : y, around)};
    };
    expect_agreement(build, static_cast<std::uint64_t>(++done));
  }
}

/// Wide enough for Winograd's algorithm, with images that are no whole number of its tiles.
TEST(Convolution, AgreesWithWideSquareFilters) {
  Draw draw(5);
  for (int done = 0; done < few_or_all(4, 12) * stress_factor();) {
    const Shape image{draw.between(1, 3), 16 * draw.between(1, 4), draw.between(3, 19), draw.between(3, 19)};
    Net::Conv conv;
    conv.kernel = {3, 3};
    conv.padding = {draw.between(0, 1), draw.between(0, 1)};
    conv.bias = draw.coin();
    const std::int64_t outputs = 16 * draw.between(1, 4);
    const Surroundings around{draw.coin(), draw.coin()};
    const auto build = [&](Net& net) -> std::vector<Value> {
      return {leaving(net, net.conv2d("conv", arriving(net, image, around), outputs, conv), around)};
    };
    expect_agreement(build, static_cast<std::uint64_t>(++done));
  }
}

/// How far a transposed window reaches past what its padding cuts off.
bool leaves_something(const Shape& image, const Net::Conv& conv) {
  for (const std::size_t axis : {0U, 1U}) {
    const std::int64_t reach = conv.dilation[axis] * (conv.kernel[axis] - 1) + 1;
    if ((image[2 + axis] - 1) * conv.stride[axis] - 2 * conv.padding[axis] + reach <= 0) return false;
  }
  return true;
}

TEST(TransposedConvolution, AgreesForAnyWindow) {
  Draw draw(2);
  for (int done = 0; done < few_or_all(10, 30) * stress_factor();) {
    const Shape image = draw.image();
    const Net::Conv conv = drawn_conv(draw, image[1]);
    if (!leaves_something(image, conv)) continue;
    const std::int64_t outputs = drawn_outputs(draw, image[1], conv.groups);
    const Surroundings around{draw.coin(), draw.coin()};
    const auto build = [&](Net& net) -> std::vector<Value> {
      const Value x = arriving(net, image, around);
      return {leaving(net, net.conv_transpose2d("conv", x, outputs, conv), around)};
    };
    expect_agreement(build, static_cast<std::uint64_t>(++done));
  }
}

/// Its filters are stored the other way round: with as many inputs as outputs nothing but values tells.
TEST(TransposedConvolution, AgreesWithSquareFilters) {
  for (const std::int64_t channels : {1, 3, 16, 17, 32}) {
    for (const std::int64_t groups : {std::int64_t{1}, channels}) {
      const auto build = [&](Net& net) -> std::vector<Value> {
        const Net::Conv conv{
            .kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}, .groups = groups, .initial = {}};
        return {net.conv_transpose2d("conv", given(net, {2, channels, 5, 5}), channels, conv)};
      };
      expect_agreement(build, static_cast<std::uint64_t>(channels));
    }
  }
}

Net::Pool drawn_pool(Draw& draw) {
  Net::Pool pool;
  for (const std::size_t axis : {0U, 1U}) {
    pool.kernel[axis] = draw.of({1, 2, 3, 5});
    pool.stride[axis] = draw.of({1, 2, 3});
    pool.padding[axis] = draw.between(0, pool.kernel[axis] / 2);
  }
  pool.include_padding = draw.coin();
  return pool;
}

bool fits(const Shape& image, const Net::Pool& pool) {
  return image[2] + 2 * pool.padding[0] >= pool.kernel[0] && image[3] + 2 * pool.padding[1] >= pool.kernel[1];
}

void expect_pools_agree(Value (Net::*pool)(Value, const Net::Pool&), std::uint64_t seed) {
  Draw draw(seed);
  for (int done = 0; done < few_or_all(9, 25) * stress_factor();) {
    const Shape image = draw.image();
    const Net::Pool options = drawn_pool(draw);
    if (!fits(image, options)) continue;
    const Surroundings around{draw.coin(), draw.coin()};
    const auto build = [&](Net& net) -> std::vector<Value> {
      return {leaving(net, (net.*pool)(arriving(net, image, around), options), around)};
    };
    expect_agreement(build, static_cast<std::uint64_t>(++done));
  }
}

TEST(Pooling, LargestAgrees) { expect_pools_agree(&Net::max_pool2d, 3); }
TEST(Pooling, AverageAgrees) { expect_pools_agree(&Net::avg_pool2d, 4); }

TEST(Pooling, OverTheWholeImageAgrees) {
  for (const Surroundings around : kSurroundings) {
    for (const Shape& image : {Shape{2, 17, 7, 5}, Shape{3, 32, 1, 1}, Shape{1, 3, 13, 1}}) {
      const auto build = [&](Net& net) -> std::vector<Value> {
        return {leaving(net, net.global_avg_pool2d(arriving(net, image, around)), around)};
      };
      expect_agreement(build, 1);
    }
  }
}

/// Two pools over images of one shape that lie differently.
TEST(Pooling, AgreesForTwoImagesOfOneShape) {
  const auto build = [](Net& net) -> std::vector<Value> {
    const Shape image{2, 16, 7, 7};
    const Value plain = given(net, image, "a"), blocked = arriving(net, image, {true, false}, "b");
    const Net::Pool pool{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    return {net.avg_pool2d(plain, pool), net.avg_pool2d(blocked, pool), net.max_pool2d(plain, pool),
            net.max_pool2d(blocked, pool)};
  };
  expect_agreement(build, 1);
}

}  // namespace
}  // namespace terrace::agreement
