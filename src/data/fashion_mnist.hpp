// Fashion-MNIST: 60,000 pictures of clothes to train on and 10,000 to test with, 28 x 28 grey bytes each, in
// ten classes. Read from the files of Debian's package dataset-fashion-mnist, or from a folder with files of
// the same names. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "terrace/result.hpp"

namespace terrace {

/// Pictures of one size, and the class of each.
struct LabelledImages {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<std::uint8_t> pixels;  ///< picture by picture, row by row
  std::vector<std::uint8_t> labels;

  std::size_t count() const noexcept { return labels.size(); }
  std::size_t pixels_per_image() const noexcept { return std::size_t{rows} * columns; }
};

enum class DataSplit { train, test };

/// Where Debian's package puts the files.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";
inline constexpr std::uint32_t kFashionMnistSide = 28;
inline constexpr std::uint8_t kFashionMnistClasses = 10;

/// Every label is below kFashionMnistClasses and there is at least one picture. Fails with one sentence where
/// a file is missing or damaged; throws EnvironmentError where the disk fails.
Result<LabelledImages> load_fashion_mnist(DataSplit split,
                                          const std::filesystem::path& folder = kFashionMnistFolder);

}  // namespace terrace
