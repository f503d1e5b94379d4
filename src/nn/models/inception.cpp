#include <initializer_list>

#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

struct Step {
  std::int64_t channels;
  Net::Pair kernel, stride, padding;
};

/// Keeps the extents.
constexpr Step same(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return {channels, {height, width}, {1, 1}, {height / 2, width / 2}};
}
/// 3x3 without padding: "V" in the figures of the paper.
constexpr Step valid(std::int64_t channels, std::int64_t stride) {
  return {channels, {3, 3}, {stride, stride}, {0, 0}};
}

/// The blocks of figures 3 to 8, with timm's names; each takes the whole image and returns the whole next
/// one.
class Blocks {
 public:
  Blocks(Net& net, std::int64_t narrowing) : net_(net), narrowing_(narrowing) {}

  Value conv(const std::string& name, Value x, const Step& step) {
    const auto scope = net_.scope(name);
    x = net_.conv2d("conv", x, step.channels / narrowing_,
                    {.kernel = step.kernel,
                     .stride = step.stride,
                     .padding = step.padding,
                     .bias = false,
                     .initial = {}});
    return net_.batch_norm("bn", x, {.epsilon = 1e-3F, .relu = true});
  }

  Value mixed_3a(Value x) { return net_.concat({max_pool(x), conv("conv", x, valid(96, 2))}); }
  Value mixed_4a(Value x) {
    const Value left = chain("branch0", x, {same(64, 1, 1), valid(96, 1)});
    return net_.concat(
        {left, chain("branch1", x, {same(64, 1, 1), same(64, 1, 7), same(64, 7, 1), valid(96, 1)})});
  }
  Value mixed_5a(Value x) { return net_.concat({conv("conv", x, valid(192, 2)), max_pool(x)}); }

  Value inception_a(Value x) {
    const Value b0 = conv("branch0", x, same(96, 1, 1));
    const Value b1 = chain("branch1", x, {same(64, 1, 1), same(96, 3, 3)});
    const Value b2 = chain("branch2", x, {same(64, 1, 1), same(96, 3, 3), same(96, 3, 3)});
    return net_.concat({b0, b1, b2, pooled("branch3", x, 96)});
  }
  Value reduction_a(Value x) {
    const Value b0 = conv("branch0", x, valid(384, 2));
    const Value b1 = chain("branch1", x, {same(192, 1, 1), same(224, 3, 3), valid(256, 2)});
    return net_.concat({b0, b1, max_pool(x)});
  }
  Value inception_b(Value x) {
    const Value b0 = conv("branch0", x, same(384, 1, 1));
    const Value b1 = chain("branch1", x, {same(192, 1, 1), same(224, 1, 7), same(256, 7, 1)});
    const Value b2 = chain(
        "branch2", x, {same(192, 1, 1), same(192, 7, 1), same(224, 1, 7), same(224, 7, 1), same(256, 1, 7)});
    return net_.concat({b0, b1, b2, pooled("branch3", x, 128)});
  }
  Value reduction_b(Value x) {
    const Value b0 = chain("branch0", x, {same(192, 1, 1), valid(192, 2)});
    const Value b1 = chain("branch1", x, {same(256, 1, 1), same(256, 1, 7), same(320, 7, 1), valid(320, 2)});
    return net_.concat({b0, b1, max_pool(x)});
  }
  Value inception_c(Value x) {
    const Value b0 = conv("branch0", x, same(256, 1, 1));
    const Value middle = conv("branch1_0", x, same(384, 1, 1));
    const Value b1a = conv("branch1_1a", middle, same(256, 1, 3));
    const Value b1b = conv("branch1_1b", middle, same(256, 3, 1));
    Value deep = conv("branch2_0", x, same(384, 1, 1));
    deep = conv("branch2_1", deep, same(448, 3, 1));
    deep = conv("branch2_2", deep, same(512, 1, 3));
    const Value b2a = conv("branch2_3a", deep, same(256, 1, 3));
    const Value b2b = conv("branch2_3b", deep, same(256, 3, 1));
    return net_.concat({b0, b1a, b1b, b2a, b2b, pooled("branch3", x, 256)});
  }

 private:
  Value chain(const std::string& name, Value x, std::initializer_list<Step> steps) {
    int place = 0;
    for (const Step& step : steps) x = conv(name + "." + std::to_string(place++), x, step);
    return x;
  }
  Value max_pool(Value x) { return net_.max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}}); }
  Value pooled(const std::string& name, Value x, std::int64_t channels) {
    x = net_.avg_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .include_padding = false});
    return conv(name + ".1", x, same(channels, 1, 1));
  }

  Net& net_;
  std::int64_t narrowing_;
};

}  // namespace

Value inception4(Net& net, Value x, const InceptionOptions& options) {
  if (options.narrowing < 1 || 32 % options.narrowing != 0) {
    throw GraphError("inception4 is narrowed by 1, 2, 4, 8, 16 or 32, not by " +
                     std::to_string(options.narrowing));
  }
  Blocks blocks(net, options.narrowing);
  x = blocks.conv("features.0", x, valid(32, 2));
  x = blocks.conv("features.1", x, valid(32, 1));
  x = blocks.conv("features.2", x, same(64, 3, 3));
  int place = 3;
  const auto append = [&](Value (Blocks::*block)(Value), std::int64_t times = 1) {
    for (std::int64_t i = 0; i < times; ++i) {
      const auto scope = net.scope("features." + std::to_string(place++));
      x = (blocks.*block)(x);
    }
  };
  append(&Blocks::mixed_3a);
  append(&Blocks::mixed_4a);
  append(&Blocks::mixed_5a);
  append(&Blocks::inception_a, options.blocks[0]);
  append(&Blocks::reduction_a);
  append(&Blocks::inception_b, options.blocks[1]);
  append(&Blocks::reduction_b);
  append(&Blocks::inception_c, options.blocks[2]);
  x = net.dropout(net.flatten(net.global_avg_pool2d(x)), options.dropout);
  return net.linear("last_linear", x, options.classes);
}

}  // namespace terrace::networks
