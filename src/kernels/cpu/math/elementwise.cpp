#include "kernels/cpu/math/elementwise.hpp"

#include "kernels/cpu/math/loops.hpp"

namespace terrace::math {

void add(const float* a, const float* b, float* out, std::int64_t n) {
  for_elements(n, [=](std::int64_t i) { out[i] = a[i] + b[i]; });
}

void scale(const float* a, float factor, float* out, std::int64_t n) {
  for_elements(n, [=](std::int64_t i) { out[i] = factor * a[i]; });
}

void add_relu(const float* a, const float* b, float* out, std::int64_t n) {
  for_elements(n, [=](std::int64_t i) {
    const float sum = a[i] + b[i];
    out[i] = sum < 0 ? 0 : sum;
  });
}

void relu_backward(const float* dy, const float* y, float* dx, std::int64_t n) {
  for_elements(n, [=](std::int64_t i) { dx[i] = y[i] > 0 ? dy[i] : 0; });
}

void running_average(float* average, const float* value, float momentum, std::int64_t n) {
  const float kept = 1 - momentum;
  for_elements(n, [=](std::int64_t i) { average[i] = kept * average[i] + momentum * value[i]; });
}

}  // namespace terrace::math
