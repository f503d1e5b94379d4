// Fashion-MNIST has 60,000 images of clothes for training and 10,000 for testing, 28 x 28 grey bytes each, in
// ten classes. It is read from the files of Debian's package dataset-fashion-mnist, or from a folder with
// files of the same names. Reading is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "terrace/result.hpp"

namespace terrace {

/// Images of one size, and the class of each.
struct LabelledImages {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<std::uint8_t> pixels;  ///< image by image, row by row
  std::vector<std::uint8_t> labels;

  std::size_t count() const noexcept { return labels.size(); }
  std::size_t pixels_per_image() const noexcept { return std::size_t{rows} * columns; }
};

enum class DataSplit { train, test };

/// Debian's package installs the files here.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";
inline constexpr std::uint32_t kFashionMnistSide = 28;
inline constexpr std::uint8_t kFashionMnistClasses = 10;

/// Loads one split, which has at least one image and only labels below kFashionMnistClasses. Fails with one
/// sentence where a file is missing or damaged; throws EnvironmentError where the disk fails.
Result<LabelledImages> load_fashion_mnist(DataSplit split,
                                          const std::filesystem::path& folder = kFashionMnistFolder);

}  // namespace terrace
