// SPDX-License-Identifier: Apache-2.0
#include "ann/layer_builder.hpp"

#include <algorithm>

#include "ann/connect.hpp"
#include "ann/prefetch.hpp"
#include "base/check.hpp"

namespace terrace::ann {

LayerBuilder::LayerBuilder(const Rows& rows, const std::vector<std::uint32_t>& order,
                           std::vector<BuiltLayer> layers, std::uint32_t ef_construction)
    : rows_(rows),
      order_(order),
      ef_construction_(ef_construction),
      visited_(layers.empty() ? 0 : layers.front().nodes) {
  for (const BuiltLayer& size : layers) {
    check(size.links <= 0xFFFF, "a node has at most 65535 links");
    fresh_.resize(std::max<std::size_t>(fresh_.size(), size.links));
    layers_.push_back({size, HugeVector<std::uint32_t>(size.nodes * size.links, kNoLink),
                       HugeVector<float>(size.nodes * size.links), std::vector<std::uint16_t>(size.nodes)});
  }
}

void LayerBuilder::insert(std::uint32_t node) {
  if (node == 0) return;
  const float* query = vector_of(node);
  Link nearest{0, distance(query, 0)};
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    if (node >= layer.size.nodes) {
      // The layer is full: it only leads the way.
      descend(query, layer, nearest);
      continue;
    }
    search(query, layer, nearest);
    nearest = {pool_.held().front().id, pool_.held().front().distance};
    connect(layer, node);
  }
}

void LayerBuilder::descend(const float* query, const Layer& layer, Link& nearest) {
  for (bool nearer = true; nearer;) {
    nearer = false;
    const std::uint32_t* links = layer.links.data() + layer.place(nearest.node);
    const std::size_t count = layer.counts[nearest.node];
    for (std::size_t i = 0; i < count; ++i) prefetch_start(vector_of(links[i]));
    for (std::size_t i = 0; i < count; ++i) {
      const Link one{links[i], distance(query, links[i])};
      if (!one.nearer_than(nearest)) continue;
      nearest = one;
      nearer = true;
    }
  }
}

void LayerBuilder::search(const float* query, const Layer& layer, Link entry) {
  visited_.start();
  pool_.reset(ef_construction_);
  visited_.meet(entry.node);
  pool_.insert({entry.distance, entry.node});
  while (const Candidate* next = pool_.expand_next()) expand(query, layer, next->id);
}

void LayerBuilder::expand(const float* query, const Layer& layer, std::uint32_t node) {
  const std::uint32_t* links = layer.links.data() + layer.place(node);
  const std::size_t width = layer.size.links, bytes = rows_.dimension * sizeof(float);
  // Whether a node is new changes from link to link too often for a branch.
  std::size_t count = 0;
  for (std::size_t i = 0; i < layer.counts[node]; ++i) {
    fresh_[count] = links[i];
    count += visited_.meet(links[i]) ? 1 : 0;
  }
  // Unless something nearer is found now, this is the next step.
  if (const Candidate* next = pool_.next())
    prefetch(layer.links.data() + layer.place(next->id), width * sizeof *links);
  for (std::size_t i = 0; i < std::min(kLookAhead, count); ++i) prefetch(vector_of(fresh_[i]), bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kLookAhead < count) prefetch(vector_of(fresh_[i + kLookAhead]), bytes);
    const float here = distance(query, fresh_[i]);
    if (pool_.may_keep(here)) pool_.insert({here, fresh_[i]});
  }
}

void LayerBuilder::choose(std::vector<Link>& sorted, std::size_t most) {
  choose_links(sorted, most, kept_,
               [this](std::uint32_t a, std::uint32_t b) { return distance(vector_of(a), b); });
}

void LayerBuilder::connect(Layer& layer, std::uint32_t node) {
  chosen_.clear();
  for (const Candidate& one : pool_.held()) chosen_.push_back({one.id, one.distance});
  choose(chosen_, layer.size.chosen);
  write_links(layer, node, chosen_);
  for (const Link& one : chosen_) add_link(layer, one.node, {node, one.distance});
}

void LayerBuilder::add_link(Layer& layer, std::uint32_t from, Link link) {
  const std::size_t at = layer.place(from);
  std::uint16_t& count = layer.counts[from];
  if (count < layer.size.links) {
    layer.links[at + count] = link.node;
    layer.distances[at + count] = link.distance;
    ++count;
    return;
  }
  shrunk_.assign(1, link);
  for (std::size_t i = at; i < at + count; ++i) shrunk_.push_back({layer.links[i], layer.distances[i]});
  sort_links(shrunk_);
  choose(shrunk_, layer.size.links);
  write_links(layer, from, shrunk_);
}

void LayerBuilder::write_links(Layer& layer, std::uint32_t node, const std::vector<Link>& links) {
  const std::size_t at = layer.place(node);
  for (std::size_t i = 0; i < links.size(); ++i) {
    layer.links[at + i] = links[i].node;
    layer.distances[at + i] = links[i].distance;
  }
  layer.counts[node] = static_cast<std::uint16_t>(links.size());
}

std::vector<std::vector<std::uint32_t>> LayerBuilder::take_links() {
  std::vector<std::vector<std::uint32_t>> all;
  for (Layer& layer : layers_) {
    std::vector<std::uint32_t> links(layer.links.size(), kNoLink);
    for (std::uint32_t node = 0; node < layer.counts.size(); ++node) {
      const auto from = layer.links.begin() + static_cast<std::ptrdiff_t>(layer.place(node));
      std::copy_n(from, layer.counts[node], links.begin() + static_cast<std::ptrdiff_t>(layer.place(node)));
    }
    connect_all({layer.size.nodes, layer.size.links}, links, rows_, order_);
    all.push_back(std::move(links));
    layer = {};
  }
  return all;
}

}  // namespace terrace::ann
