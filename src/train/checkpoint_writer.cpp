#include "train/checkpoint_writer.hpp"

#include <algorithm>

namespace terrace {
namespace {
using namespace literals;
constexpr Bytes kPiece = 4_MiB;
}  // namespace

CheckpointWriter::CheckpointWriter(Request request)
    : request_(std::move(request)), thread_([this] { run(); }) {}

CheckpointWriter::~CheckpointWriter() { wait(); }

void CheckpointWriter::wait_before(std::uint32_t instruction) {
  while (needed_ < request_.tensors.size() && request_.tensors[needed_].until <= instruction) ++needed_;
  for (auto written = written_.load(); written < needed_; written = written_.load()) written_.wait(written);
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
}

Result<void> CheckpointWriter::finish() {
  wait();
  if (failure_) std::rethrow_exception(failure_);
  return *result_;
}

void CheckpointWriter::run() try {
  std::vector<safetensors::Tensor> tensors;
  for (const KeptTensor& kept : request_.tensors) {
    const Tensor& tensor = request_.graph[kept.tensor];
    tensors.push_back({tensor.name, safetensors::DType::u8, {tensor.bytes.count}, {}});
  }
  result_ =
      safetensors::write(request_.path, tensors, request_.metadata,
                         [this](std::size_t index, std::uint64_t offset) { return bytes_of(index, offset); });
  publish(request_.tensors.size());
} catch (...) {
  failure_ = std::current_exception();
  publish(request_.tensors.size());
}

void CheckpointWriter::publish(std::size_t written) {
  written_ = static_cast<std::uint32_t>(written);
  written_.notify_all();
}

std::span<const std::byte> CheckpointWriter::bytes_of(std::size_t index, std::uint64_t offset) {
  // Asking for the next tensor means that the one before was taken: steps need not wait for the disk.
  publish(index);
  if (index == request_.tensors.size()) return {};
  if (offset == 0 && request_.before_each) request_.before_each();
  const KeptTensor& kept = request_.tensors[index];
  const std::uint64_t left = request_.graph[kept.tensor].bytes.count - offset;
  if (const std::byte* memory = request_.tiers.at(kept.address)) return {memory + offset, left};
  staging_.resize(kPiece.count);
  const std::span<std::byte> piece(staging_.data(), std::min(left, kPiece.count));
  request_.tiers.read({kept.address.tier, kept.address.offset + offset}, piece);
  return piece;
}

}  // namespace terrace
