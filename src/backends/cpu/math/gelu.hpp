// The Gaussian error linear unit (Hendrycks and Gimpel 2016). Elementwise, thread-safe; the number of threads
// changes nothing.
#pragma once

#include <cstdint>

namespace terrace::math {

enum class Gelu {
  exact,  ///< x times the share of the normal distribution below x
  tanh,   ///< its approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
};

/// y may be x.
void gelu_forward(const float* x, Gelu kind, float* y, std::int64_t n);
/// dx = dy times the derivative at x. dx may be dy or x.
void gelu_backward(const float* x, const float* dy, Gelu kind, float* dx, std::int64_t n);

}  // namespace terrace::math
