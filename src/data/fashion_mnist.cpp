// SPDX-License-Identifier: Apache-2.0
#include "data/fashion_mnist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/idx.hpp"

namespace terrace {
namespace {

Error refuse(const std::filesystem::path& path, const std::string& reason) {
  return {ErrorCode::invalid_argument, fmt::format("{} {}; fetch the file again", path.native(), reason)};
}

Result<Idx> read_part(const std::filesystem::path& path) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) || unknown) return read_idx(path);
  return Error{ErrorCode::invalid_argument,
               fmt::format("there is no {}: run `apt-get install dataset-fashion-mnist`, or name the folder "
                           "that holds the dataset with --data-folder",
                           path.native())};
}

Result<Idx> read_images(const std::filesystem::path& path) {
  auto images = read_part(path);
  if (!images) return images;
  const auto& dims = images->dims;
  if (dims.size() != 3 || dims[1] != kFashionMnistSide || dims[2] != kFashionMnistSide)
    return refuse(path, fmt::format("has dimensions {} where pictures of {} x {} are expected",
                                    fmt::join(dims, " x "), kFashionMnistSide, kFashionMnistSide));
  if (dims[0] == 0) return refuse(path, "holds no picture");
  return images;
}

Result<Idx> read_labels(const std::filesystem::path& path) {
  auto labels = read_part(path);
  if (!labels) return labels;
  if (labels->dims.size() != 1)
    return refuse(path, fmt::format("has dimensions {} where a list of labels is expected",
                                    fmt::join(labels->dims, " x ")));
  const auto& bytes = labels->bytes;
  const auto wrong = std::find_if(bytes.begin(), bytes.end(),
                                  [](std::uint8_t label) { return label >= kFashionMnistClasses; });
  if (wrong != bytes.end())
    return refuse(path, fmt::format("gives picture {} the label {} where 0 to {} are expected",
                                    wrong - bytes.begin(), *wrong, kFashionMnistClasses - 1));
  return labels;
}

}  // namespace

Result<LabelledImages> load_fashion_mnist(DataSplit split, const std::filesystem::path& folder) {
  const std::string prefix = split == DataSplit::train ? "train" : "t10k";
  const auto labels_path = folder / (prefix + "-labels-idx1-ubyte.gz");
  auto images = read_images(folder / (prefix + "-images-idx3-ubyte.gz"));
  if (!images) return images.error();
  auto labels = read_labels(labels_path);
  if (!labels) return labels.error();
  if (labels->dims[0] != images->dims[0])
    return refuse(labels_path,
                  fmt::format("holds {} labels for {} pictures", labels->dims[0], images->dims[0]));
  return LabelledImages{images->dims[1], images->dims[2], std::move(images->bytes), std::move(labels->bytes)};
}

}  // namespace terrace
