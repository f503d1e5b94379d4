// Trains a graph with all of its tensors in memory, at offsets settled beforehand.
//
//   program   a graph made ready for this processor, and where each tensor lies in one arena; nothing is
//   allocated yet trainer   the arena, the kernels and the state of training
//
// A step runs every kernel once and allocates nothing. With the same seed and number of threads every run
// gives the same bits. Inputs must be filled before each step: their memory is used again within it. One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

struct Program {
  Graph graph;
  std::vector<std::uint64_t> offsets;  ///< of each tensor in the arena
  Bytes arena;
  Bytes peak;            ///< the most bytes live at once: no arena is smaller
  unsigned threads = 1;  ///< it was made for
};

/// Threads 0: as many as this process can keep busy. Fails for graphs with operations that are not ours. A
/// library built without oneDNN has nothing of this header.
Result<Program> compile(const Graph& graph, unsigned threads = 0);

struct TrainerOptions {
  std::uint64_t seed = 0;
  float learning_rate = 0.01F;
};

class Trainer {
 public:
  /// Takes the memory and sets every weight and state to its initial value. Fails where the memory is not
  /// there, naming what is needed and what is available; nothing is allocated then.
  static Result<Trainer> start(Program program, const TrainerOptions& options);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  const Program& program() const;
  std::uint64_t steps_done() const;
  void set_learning_rate(float rate);

  /// Where to put an input for the next step, row-major. pre: the graph has such an input
  std::span<float> input(std::string_view name);
  std::span<std::int32_t> integer_input(std::string_view name);
  void step();
  /// The same, and the time each kernel took is added to `times`. pre: one entry for each kernel of the
  /// program's graph
  void step(std::span<Seconds> times);
  /// A result of the last step, row-major.
  std::vector<float> result(std::size_t index) const;

  /// A persistent tensor (a weight, a state, running statistics), row-major as PyTorch stores it. pre: there
  /// is one
  std::vector<float> read(std::string_view name) const;
  void write(std::string_view name, std::span<const float> values);

  /// All weights and running statistics, in the safetensors format. Loading wants every weight of the graph
  /// in the right shape; what else the file holds is left alone.
  Result<void> save_weights(const std::filesystem::path& path) const;
  Result<void> load_weights(const std::filesystem::path& path);

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace terrace
