// SPDX-License-Identifier: Apache-2.0
// Pictures as vectors of their pixels: Fashion-MNIST is fashion-mnist-784 of ann-benchmarks.
#pragma once

#include "data/fashion_mnist.hpp"
#include "terrace/ann.hpp"

namespace terrace::ann {

/// Fails as loading the pictures does.
inline Result<Vectors> fashion_mnist(DataSplit split,
                                     const std::filesystem::path& folder = kFashionMnistFolder) {
  const auto images = load_fashion_mnist(split, folder);
  if (!images) return images.error();
  return Vectors{images->pixels_per_image(), {images->pixels.begin(), images->pixels.end()}};
}

}  // namespace terrace::ann
