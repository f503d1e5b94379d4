// SPDX-License-Identifier: Apache-2.0
#include "ann/layout.hpp"

#include "ann/codes.hpp"
#include "base/check.hpp"

namespace terrace::ann {
namespace {

std::uint64_t promoted_in(const std::vector<LayerSize>& layers) {
  return layers.size() > 1 ? layers[1].nodes : 0;
}

/// Bytes of `count` things, none of which crosses the border of a unit.
Bytes in_units(std::uint64_t count, Bytes size, Bytes unit) {
  const std::uint64_t each = unit / size;
  return unit * ((count + each - 1) / each);
}

}  // namespace

PartSize fast_size(const std::vector<LayerSize>& layers, std::size_t dimension) {
  PartSize size;
  for (std::size_t i = 1; i < layers.size(); ++i)
    size.links += kLinkBytes * (layers[i].nodes * layers[i].links);
  size.elements = Bytes{sizeof(float) * dimension} * promoted_in(layers);
  size.ids = kIdBytes * promoted_in(layers);
  return size;
}

PartSize slow_size(const std::vector<LayerSize>& layers, std::size_t dimension, ElementType type) {
  if (layers.empty()) return {};
  const std::uint64_t rest = layers[0].nodes - promoted_in(layers);
  return {kLinkBytes * (layers[0].nodes * layers[0].links), Bytes{size_of(type) * dimension} * rest,
          kIdBytes * rest};
}

Bytes codes_size(const std::vector<LayerSize>& layers, std::size_t dimension, std::uint32_t code_bytes) {
  if (layers.empty() || code_bytes == 0) return {};
  return Bytes{sizeof(float) * Codebook::size_for(dimension)} +
         Bytes{code_bytes} * (layers[0].nodes - promoted_in(layers));
}

std::uint64_t most_promoted(std::uint64_t nodes, std::uint32_t links, std::size_t dimension,
                            std::uint32_t code_bytes, Bytes fast) {
  const auto fits = [&](std::uint64_t promoted) {
    const auto layers = promoted_layers(nodes, promoted, links);
    return fast_size(layers, dimension).total() + codes_size(layers, dimension, code_bytes) <= fast;
  };
  std::uint64_t least = 0, most = nodes;
  while (least < most) {
    const std::uint64_t middle = most - (most - least) / 2;
    fits(middle) ? least = middle : most = middle - 1;
  }
  return least;
}

SlowLayout::SlowLayout(const std::vector<LayerSize>& layers, std::size_t dimension, bool blocks,
                       ElementType type)
    : dimension_(dimension), type_(type), promoted_(promoted_in(layers)) {
  check(blocks || type == ElementType::f32, "only a disk holds vectors as bytes");
  if (layers.empty()) return;
  links_ = layers[0].links;
  nodes_ = layers[0].nodes;
  if (blocks) unit_ = round_up(record_bytes(), kUnit);
  records_at_ = blocks ? in_units(promoted_, list_bytes(), unit_).count : (list_bytes() * promoted_).count;
}

Bytes SlowLayout::total() const {
  const std::uint64_t records = nodes_ - promoted_;
  const Bytes start{records_at_};
  return start + (unit_.count > 0 ? in_units(records, record_bytes(), unit_) : stride() * records);
}

Bytes SlowLayout::stride() const {
  const bool lines = list_bytes() % kLine == Bytes{0} && id_at() % kLine == Bytes{0};
  return lines ? round_up(record_bytes(), kLine) : record_bytes();
}

std::uint64_t SlowLayout::place(std::uint32_t node) const {
  const bool listed = node < promoted_;
  const std::uint64_t index = listed ? node : node - promoted_, start = listed ? 0 : records_at_;
  if (unit_.count == 0) return start + index * (listed ? list_bytes() : stride()).count;
  const std::uint64_t size = (listed ? list_bytes() : record_bytes()).count;
  const std::uint64_t each = unit_.count / size;
  return start + index / each * unit_.count + index % each * size;
}

}  // namespace terrace::ann
