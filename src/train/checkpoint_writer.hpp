// CheckpointWriter: writes one checkpoint from where the tensors lie, in a thread of its own, while a step
// goes on.
//
// Tensors are written in the order in which a step changes them; the step asks before every instruction and
// is held back only while what that instruction changes is not written yet. Takes 4 MiB where tensors lie on
// a disk.
#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <thread>

#include "data/safetensors.hpp"
#include "exec/step_gate.hpp"
#include "train/checkpoint_source.hpp"

namespace terrace {

class CheckpointWriter final : public StepGate {
 public:
  struct Request {
    std::filesystem::path path;
    const Graph& graph;
    const OpenTiers& tiers;
    std::span<const KeptTensor> tensors;  ///< as kept_tensors() gives them
    safetensors::Metadata metadata;
    std::function<void()> before_each = {};  ///< for tests: called before a tensor is read
  };

  /// Begins. What the request refers to outlives the writer, and nothing but steps changes the tensors.
  explicit CheckpointWriter(Request request);
  /// Waits for the end.
  ~CheckpointWriter() override;

  /// Returns when the instruction changes nothing that is still to be written; at once after a failure.
  void wait_before(std::uint32_t instruction) override;
  /// Returns when the writing has ended, well or not.
  void wait();
  /// The same, and says how: fails and throws as safetensors::write does.
  Result<void> finish();

 private:
  void run();
  void publish(std::size_t written);
  std::span<const std::byte> bytes_of(std::size_t index, std::uint64_t offset);

  const Request request_;
  std::vector<std::byte> staging_;
  std::atomic<std::uint32_t> written_{0};  // tensors; all of them after a failure, too
  std::uint32_t needed_ = 0;               // by the instructions that were asked for
  std::optional<Result<void>> result_;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses all of these
};

}  // namespace terrace
