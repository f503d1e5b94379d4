// SPDX-License-Identifier: Apache-2.0
// A user's program: describes a network of its own and trains it in a fifth of the memory it asks for, with
// nothing but the installed headers.
//
//   outside [MACHINE]      a file that describes this computer; without one it is measured, in a minute
#include <iostream>
#include <terrace/net.hpp>
#include <terrace/session.hpp>
#include <terrace/version.hpp>

namespace {

constexpr std::int64_t kBatch = 256;

terrace::Graph deep_network() {
  terrace::Net net("deep");
  terrace::Value x = net.input("x", {kBatch, 128});
  const terrace::Value label = net.input("label", {kBatch}, terrace::DataType::i32);
  for (int i = 0; i < 16; ++i) x = net.relu(net.linear("fc" + std::to_string(i), x, 128));
  net.train(net.cross_entropy(net.linear("last", x, 10), label), {});
  return std::move(net).finish();
}

void fill(std::uint64_t step, terrace::Trainer& trainer) {
  std::uint32_t next = static_cast<std::uint32_t>(step) + 1;
  for (float& value : trainer.input("x"))
    value = static_cast<float>((next = next * 1664525 + 1013904223) >> 8U) * 0x1p-23F - 1;
  for (std::int32_t& value : trainer.integer_input("label"))
    value = static_cast<std::int32_t>((next = next * 1664525 + 1013904223) >> 8U) % 10;
}

}  // namespace

int main(int argc, char** argv) try {
  terrace::SessionOptions options{.fast = "20%", .machine = argc > 1 ? argv[1] : "this"};
  terrace::Session session(deep_network(), options);
  const terrace::Bytes wanted = session.workload().value().peak;
  const terrace::TrainingRun little = session.train(4, fill).value();

  options.fast.clear();
  const terrace::TrainingRun all = terrace::Session(deep_network(), options).train(4, fill).value();

  std::cout << "terrace " TERRACE_VERSION << (little.loss == all.loss ? ": same bits" : ": OTHER bits")
            << (little.peak[0].count <= wanted.count / 5 ? " in 20% of the memory\n"
                                                         : " in TOO MUCH memory\n");
} catch (const std::exception& error) {
  std::cerr << "outside: " << error.what() << "\n";
  return 1;
}
