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
    layers_.push_back(
        {size, HugeVector<Link>(size.nodes * size.links), std::vector<std::uint16_t>(size.nodes)});
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
    const Link* links = layer.links.data() + std::size_t{nearest.node} * layer.size.links;
    const std::size_t count = layer.counts[nearest.node];
    for (std::size_t i = 0; i < count; ++i) prefetch_start(vector_of(links[i].node));
    for (std::size_t i = 0; i < count; ++i) {
      const float here = distance(query, links[i].node);
      if (here < nearest.distance || (here == nearest.distance && links[i].node < nearest.node)) {
        nearest = {links[i].node, here};
        nearer = true;
      }
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
  const Link* links = layer.links.data() + std::size_t{node} * layer.size.links;
  fresh_.clear();
  for (std::size_t i = 0; i < layer.counts[node]; ++i) {
    if (visited_.meet(links[i].node)) fresh_.push_back(links[i].node);
  }
  const std::size_t bytes = rows_.dimension * sizeof(float);
  for (std::size_t i = 0; i < std::min(kLookAhead, fresh_.size()); ++i) prefetch(vector_of(fresh_[i]), bytes);
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    if (i + kLookAhead < fresh_.size()) prefetch(vector_of(fresh_[i + kLookAhead]), bytes);
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
  std::copy(chosen_.begin(), chosen_.end(),
            layer.links.begin() + static_cast<std::ptrdiff_t>(std::size_t{node} * layer.size.links));
  layer.counts[node] = static_cast<std::uint16_t>(chosen_.size());
  for (const Link& one : chosen_) add_link(layer, one.node, {node, one.distance});
}

void LayerBuilder::add_link(Layer& layer, std::uint32_t from, Link link) {
  Link* links = layer.links.data() + std::size_t{from} * layer.size.links;
  std::uint16_t& count = layer.counts[from];
  if (count < layer.size.links) {
    links[count++] = link;
    return;
  }
  shrunk_.assign(links, links + count);
  shrunk_.push_back(link);
  sort_links(shrunk_);
  choose(shrunk_, layer.size.links);
  std::copy(shrunk_.begin(), shrunk_.end(), links);
  count = static_cast<std::uint16_t>(shrunk_.size());
}

std::vector<std::vector<std::uint32_t>> LayerBuilder::take_links() {
  std::vector<std::vector<std::uint32_t>> all;
  for (Layer& layer : layers_) {
    std::vector<std::uint32_t> links(layer.links.size(), kNoLink);
    for (std::size_t node = 0; node < layer.counts.size(); ++node) {
      const std::size_t at = node * layer.size.links;
      for (std::size_t i = 0; i < layer.counts[node]; ++i) links[at + i] = layer.links[at + i].node;
    }
    connect_all({layer.size.nodes, layer.size.links}, links, rows_, order_);
    all.push_back(std::move(links));
    layer = {};
  }
  return all;
}

}  // namespace terrace::ann
