// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include "cli/command.hpp"
#include "cli/train.hpp"

namespace terrace::cli {
namespace {

bool same(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// The first loss or tensor that is not the same; empty where there is none.
std::string difference(const Trainer& limited, const Trainer& unlimited, const TrainRecord& record,
                       const TrainRecord& reference) {
  const auto first = static_cast<std::size_t>(record.first_step);
  for (std::size_t i = 0; i < record.steps(); ++i) {
    if (!same({&record.loss[i], 1}, {&reference.loss[first + i], 1})) {
      return fmt::format("the loss of step {} is {} and {} with all memory", first + i + 1, record.loss[i],
                         reference.loss[first + i]);
    }
  }
  for (const Tensor& tensor : limited.program().graph.tensors) {
    if (tensor.persistent && !same(limited.read(tensor.name), unlimited.read(tensor.name)))
      return fmt::format("tensor {} is not the same", tensor.name);
  }
  return {};
}

}  // namespace

void compare_bits(const TrainRequest& request, TrainSetup& setup, TrainRecord& record,
                  const Interrupt& interrupt, ProgressLine& line) {
  line.show("starting again with everything in memory");
  TrainSetup unlimited;
  unlimited.batch = setup.batch;
  unlimited.learning_rate = setup.learning_rate;
  unlimited.data = std::move(setup.data);
  unlimited.lengths = setup.lengths;
  const TrainerOptions options{.seed = request.seed, .learning_rate = setup.learning_rate};
  if (setup.buckets) {
    start_unlimited_buckets(*setup.buckets, options, unlimited);
  } else {
    const Program& trained = setup.trainer->program();
    const Program program =
        request.variants == "any" ? as_planned(trained, setup.plan->planned.plan.plan()) : trained;
    unlimited.trainer = std::make_unique<Trainer>(expect(Trainer::start(program, options)));
  }
  if (!request.load.empty()) expect(unlimited.trainer->load_weights(request.load));
  const TrainRecord reference = train(request, unlimited, interrupt, line);
  if (reference.end != TrainRecord::End::complete) return;
  line.show("comparing every tensor");
  record.difference = difference(*setup.trainer, *unlimited.trainer, record, reference);
  record.same_bits = record.difference.empty();
}

}  // namespace terrace::cli
