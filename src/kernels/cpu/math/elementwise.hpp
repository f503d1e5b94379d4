// The smallest kernels: one pass over arrays of equal length. Every output may be one of the inputs.
// Thread-safe; the number of threads changes nothing. NaN passes through.
#pragma once

#include <cstdint>

namespace terrace::math {

/// out = a + b
void add(const float* a, const float* b, float* out, std::int64_t n);
/// out = factor a
void scale(const float* a, float factor, float* out, std::int64_t n);
/// out = max(a + b, 0)
void add_relu(const float* a, const float* b, float* out, std::int64_t n);
/// dx = dy where y > 0, else 0
void relu_backward(const float* dy, const float* y, float* dx, std::int64_t n);
/// average = (1 - momentum) average + momentum value
void running_average(float* average, const float* value, float momentum, std::int64_t n);

}  // namespace terrace::math
