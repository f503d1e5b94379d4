// SPDX-License-Identifier: Apache-2.0
// Layer normalisation of rows (Ba et al. 2016), as PyTorch defines it: the variance is the biased one.
//
// Thread-safe. y, mean, reciprocal_deviation and dx do not depend on the number of threads; dgamma and dbeta
// are the same bits for the same number.
#pragma once

#include "math/shape.hpp"

namespace terrace::math {

/// What the forward pass leaves for the backward one: [rows] each.
struct LayerNormMoments {
  float* mean = nullptr;
  float* reciprocal_deviation = nullptr;  ///< 1 / sqrt(variance + epsilon)
};

/// y = (x - mean) reciprocal_deviation gamma + beta. y may be x. pre: there are columns
void layer_norm_forward(const float* x, const float* gamma, const float* beta, Rows shape, float epsilon,
                        float* y, const LayerNormMoments& moments);

struct LayerNormGradients {
  float* dx = nullptr;      ///< [rows, columns]; may be dy
  float* dgamma = nullptr;  ///< [columns]
  float* dbeta = nullptr;   ///< [columns]
};

/// Writes all three gradients. Uses 2 x columns floats of scratch for each thread. pre: there are columns
void layer_norm_backward(const float* x, const float* gamma, const LayerNormMoments& moments, const float* dy,
                         Rows shape, const LayerNormGradients& gradients);

}  // namespace terrace::math
