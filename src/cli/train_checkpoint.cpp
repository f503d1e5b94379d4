// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/replace_file.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/train.hpp"
#include "data/safetensors.hpp"

namespace terrace::cli {
namespace {

/// The seed decides the data, too, which the trainer knows nothing of.
void require_seed(const TrainRequest& request, const safetensors::File& checkpoint,
                  const std::filesystem::path& file) {
  const auto seed = checkpoint.metadata().find("seed");
  if (seed == checkpoint.metadata().end() || seed->second == std::to_string(request.seed)) return;
  throw BadInput(fmt::format("{} was trained with seed {} and not {}: give --seed {}, or another folder",
                             file.native(), seed->second, request.seed, seed->second));
}

/// 0 where it does not say.
std::int64_t steps_of(const safetensors::File& checkpoint) {
  const auto steps = checkpoint.metadata().find("steps");
  std::int64_t done = 0;
  return steps != checkpoint.metadata().end() && reads_as(steps->second, done) ? done : 0;
}

/// A checkpoint is of the graph that the last step before it had.
void use_bucket_of(const TrainRequest& request, const TrainSetup& setup,
                   const safetensors::File& checkpoint) {
  if (const std::int64_t done = steps_of(checkpoint); done > 0) use_bucket(request, setup, done - 1);
}

bool is_there(const std::filesystem::path& checkpoint) {
  return !checkpoint.empty() && std::filesystem::exists(checkpoint);
}

void require_saved(const Result<void>& saved) {
  if (!saved) throw std::runtime_error(saved.error().message);
}

}  // namespace

std::filesystem::path checkpoint_file(const TrainRequest& request) {
  const std::filesystem::path folder = request.checkpoint;
  std::error_code refused;
  std::filesystem::create_directories(folder, refused);
  if (refused) {
    throw BadInput(fmt::format("cannot make the folder {} for checkpoints ({}): name another",
                               folder.native(), refused.message()));
  }
  const auto file = folder / "checkpoint.safetensors";
  expect(check_replaceable(file));
  return file;
}

std::int64_t steps_kept(const TrainSetup& setup) {
  return is_there(setup.checkpoint) ? steps_of(expect(safetensors::read(setup.checkpoint))) : 0;
}

void resume(const TrainRequest& request, TrainSetup& setup) {
  if (!is_there(setup.checkpoint)) return;
  const auto checkpoint = expect(safetensors::read(setup.checkpoint));
  require_seed(request, checkpoint, setup.checkpoint);
  use_bucket_of(request, setup, checkpoint);
  const auto loaded = setup.trainer->load_checkpoint(setup.checkpoint);
  if (!loaded && setup.buckets) throw BadInput(loaded.error().message + ", and with the same --lengths");
  expect(loaded);
}

void start_checkpoint(const TrainSetup& setup) {
  require_saved(setup.trainer->start_checkpoint(setup.checkpoint));
}

void finish_checkpoint(const TrainSetup& setup) { require_saved(setup.trainer->finish_checkpoint()); }

}  // namespace terrace::cli
