// SPDX-License-Identifier: Apache-2.0
#include "terrace/access_profile.hpp"

#include <mutex>

#include "base/check.hpp"
#include "profile/access/page_watch.hpp"
#include "tiers/mapping.hpp"

namespace terrace {

PageCount AreaProfile::total() const {
  PageCount sum;
  for (const PageCount& layer : layers) {
    sum.reads += layer.reads;
    sum.writes += layer.writes;
  }
  return sum;
}

/// Shared with the areas, which may end after the profile or in another thread.
struct AccessProfiler::State {
  std::mutex mutex;                  ///< guards all that follows
  std::unique_ptr<PageWatch> watch;  ///< none: ended
  AccessOptions options;
  AccessProfile profile;
  std::vector<const std::byte*> watched;  ///< by area; nullptr: it has ended

  void add(std::size_t area, const PageAccesses& counted) {
    AreaProfile& to = profile.areas[area];
    to.layers.resize(profile.layers.size());
    to.layers.back().reads += counted.reads;
    to.layers.back().writes += counted.writes;
    to.complete = to.complete && counted.complete;
  }
  void remove(std::size_t area) {
    const std::lock_guard lock(mutex);
    if (!watch || watched[area] == nullptr) return;
    add(area, watch->remove(watched[area]));
    watched[area] = nullptr;
    profile.areas[area].last_layer = current();
  }
  void end_layer() {
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i] != nullptr) add(i, watch->take(watched[i]));
    }
  }
  std::uint32_t current() const { return static_cast<std::uint32_t>(profile.layers.size() - 1); }
  void require_running() const { check(watch != nullptr, "the profile has not ended"); }
};

struct ProfiledArea::State {
  std::shared_ptr<AccessProfiler::State> profiler;
  std::size_t index;
};

ProfiledArea::ProfiledArea(std::unique_ptr<State> state) : state_(std::move(state)) {}

ProfiledArea::ProfiledArea(ProfiledArea&&) noexcept = default;

ProfiledArea& ProfiledArea::operator=(ProfiledArea&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

ProfiledArea::~ProfiledArea() {
  if (state_) state_->profiler->remove(state_->index);
}

AccessProfiler::AccessProfiler(std::shared_ptr<State> state) : state_(std::move(state)) {}
AccessProfiler::AccessProfiler(AccessProfiler&&) noexcept = default;

AccessProfiler& AccessProfiler::operator=(AccessProfiler&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

AccessProfiler::~AccessProfiler() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->watch.reset();
}

ProfiledArea AccessProfiler::add_area(std::string name, std::span<std::byte> pages) {
  const std::lock_guard lock(state_->mutex);
  state_->require_running();
  const Bytes whole = round_up(Bytes{pages.size()}, page_size());
  state_->watch->add({pages.data(), static_cast<std::size_t>(whole.count)}, state_->options.pages_per_fault);
  state_->watched.push_back(pages.data());
  const std::uint32_t layer = state_->current();
  state_->profile.areas.push_back(
      {std::move(name), Bytes{pages.size()}, whole / page_size(), layer, layer, {}, true});
  return ProfiledArea(
      std::make_unique<ProfiledArea::State>(ProfiledArea::State{state_, state_->watched.size() - 1}));
}

void AccessProfiler::add_layer(std::string name) {
  const std::lock_guard lock(state_->mutex);
  state_->require_running();
  state_->end_layer();
  state_->profile.layers.push_back(std::move(name));
  state_->watch->arm();
}

void AccessProfiler::forget_cache() {
  const std::lock_guard lock(state_->mutex);
  state_->require_running();
  state_->watch->arm();
}

AccessProfile AccessProfiler::end_profile() {
  const std::lock_guard lock(state_->mutex);
  state_->require_running();
  state_->end_layer();
  state_->watch.reset();
  for (std::size_t i = 0; i < state_->watched.size(); ++i) {
    AreaProfile& area = state_->profile.areas[i];
    area.layers.resize(state_->profile.layers.size());
    if (state_->watched[i] != nullptr) area.last_layer = state_->current();
  }
  return std::move(state_->profile);
}

Result<AccessProfiler> start_profile(const AccessOptions& options) {
  check(options.pages_per_fault > 0, "a fault opens at least one page");
  auto watch = PageWatch::start(options.window);
  if (!watch) return watch.error();
  auto state = std::make_shared<AccessProfiler::State>();
  state->watch = *std::move(watch);
  state->options = options;
  state->profile.layers.emplace_back("start");
  return AccessProfiler(std::move(state));
}

}  // namespace terrace
