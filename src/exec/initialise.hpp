// What persistent tensors hold before the first step.
#pragma once

#include "terrace/trainer.hpp"

namespace terrace {

/// Values follow from the seed and the order of the weights alone: layouts and offsets change nothing.
void initialise(const Program& program, std::uint64_t seed, std::byte* arena);

}  // namespace terrace
