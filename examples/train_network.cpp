// A network of your own is described with Net, compiled for this processor, and trained until it separates
// points inside a circle from those outside.
#include <cstdio>
#include <random>
#include <terrace/net.hpp>
#include <terrace/session.hpp>

namespace {

using terrace::Value;
constexpr std::int64_t kBatch = 64;

// readme: begin
terrace::Graph circle_network() {
  terrace::Net net("circle");
  const Value point = net.input("point", {kBatch, 2});
  const Value label = net.input("label", {kBatch}, terrace::DataType::i32);
  const Value hidden = net.relu(net.linear("fc1", point, 32));
  net.train(net.cross_entropy(net.linear("fc2", hidden, 2), label), {.kind = terrace::Optimizer::Kind::adam});
  return std::move(net).finish();
}
// readme: end

void fill(std::uint64_t step, terrace::Trainer& trainer) {
  std::mt19937 random(static_cast<std::uint32_t>(step));
  std::uniform_real_distribution<float> coordinate(-1, 1);
  const auto points = trainer.input("point");
  const auto labels = trainer.integer_input("label");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float x = points[2 * i] = coordinate(random), y = points[2 * i + 1] = coordinate(random);
    labels[i] = x * x + y * y < 0.6F ? 1 : 0;
  }
}

}  // namespace

int main() try {
  // With {.fast = "20%"} as well it would train in a fifth of the memory, with a disk behind it.
  terrace::Session session(circle_network(), {.trainer = {.learning_rate = 0.01F}});
  constexpr float kLearnt = 0.1F;
  for (int round = 0; round < 20; ++round) {
    const float loss = session.train(100, fill).value().loss.back();
    std::printf("step %4d, loss %.4f\n", static_cast<int>(session.trainer().steps_done()), loss);
    if (loss < kLearnt) return 0;
  }
  std::fprintf(stderr, "the loss did not fall below %.1f\n", kLearnt);
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
