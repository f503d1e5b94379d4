// Which layouts an operation asks for: open where oneDNN may choose, as one of its operands lies where it has
// no preference, row-major where it needs that.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "backends/cpu/recipe.hpp"

namespace terrace::cpu {

/// How an operand is stored now; empty where its view needs a row-major tensor and it is not one.
using Stored = std::function<std::optional<Desc>(const Operand&)>;

/// How the images that went into average pooling lay, by shape: their gradients shall lie the same way.
using PoolingFormats = std::map<std::string, Desc>;

Descs preferred(const Kernel& kernel, const Stored& stored, PoolingFormats& formats);

}  // namespace terrace::cpu
