#include "train/picture_data.hpp"

#include <algorithm>
#include <string>

#include "base/check.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

std::vector<const Tensor*> inputs(const Graph& graph, DataType type) {
  std::vector<const Tensor*> found;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::input && !tensor.persistent && tensor.type == type)
      found.push_back(&tensor);
  }
  return found;
}

std::vector<std::string> names(const std::vector<const Tensor*>& tensors) {
  std::vector<std::string> all;
  for (const Tensor* tensor : tensors) all.push_back(tensor->name);
  return all;
}

std::size_t batch_of(const Graph& graph) {
  std::size_t batch = 0;
  for (const Tensor* tensor : inputs(graph, DataType::f32))
    batch += static_cast<std::size_t>(tensor->shape[0]);
  return batch;
}

bool is_picture(const Tensor* tensor) {
  constexpr std::int64_t kSide = kFashionMnistSide;
  const Shape& shape = tensor->shape;
  return shape.rank() == 4 && shape[1] == 1 && shape[2] == kSide && shape[3] == kSide;
}

bool is_loss_of_ten(const Kernel& kernel) {
  return operation_of(kernel) == Operation::cross_entropy &&
         kernel.inputs[0].shape.back() == kFashionMnistClasses;
}

template <class T>
const T* hand_out(const T* from, std::span<T> to) {
  std::copy_n(from, to.size(), to.begin());
  return from + to.size();
}

}  // namespace

bool takes_fashion_mnist(const Graph& graph) {
  const auto images = inputs(graph, DataType::f32), labels = inputs(graph, DataType::i32);
  return !images.empty() && images.size() == labels.size() &&
         std::all_of(images.begin(), images.end(), is_picture) &&
         std::any_of(graph.kernels.begin(), graph.kernels.end(), is_loss_of_ten);
}

PictureData::PictureData(const Graph& graph, const LabelledImages& pictures, std::uint64_t seed)
    : images_(names(inputs(graph, DataType::f32))),
      labels_(names(inputs(graph, DataType::i32))),
      batches_(pictures, batch_of(graph), seed),
      pixels_(batches_.batch() * pictures.pixels_per_image()),
      classes_(batches_.batch()) {
  check(takes_fashion_mnist(graph), "the graph classifies such pictures");
}

void PictureData::fill(std::uint64_t step, Trainer& trainer) {
  batches_.fill(step, pixels_, classes_);
  const float* pixels = pixels_.data();
  const std::int32_t* classes = classes_.data();
  for (const std::string& name : images_) pixels = hand_out(pixels, trainer.input(name));
  for (const std::string& name : labels_) classes = hand_out(classes, trainer.integer_input(name));
}

}  // namespace terrace
