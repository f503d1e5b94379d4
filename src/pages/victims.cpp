// SPDX-License-Identifier: Apache-2.0
#include "pages/victims.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace terrace::pages {
namespace {

class Lru final : public Victims {
 public:
  explicit Lru(PartTable& table) : table_(table) {}
  void arrived(PartId id, const Arrival&) override { list_.append(table_, id); }
  void left(PartId id) override { list_.remove(table_, id); }
  void clear() override { list_ = {}; }
  PartId next() override { return list_.first(); }

 private:
  PartTable& table_;
  PartList list_;
};

/// What hints say is not wanted soon leaves first.
class AsyncLmp final : public Victims {
 public:
  explicit AsyncLmp(PartTable& table) : table_(table) {}
  void arrived(PartId id, const Arrival&) override { put(id, wanted_, 0); }
  void left(PartId id) override { (table_[id].list != 0 ? archived_ : wanted_).remove(table_, id); }
  bool follows_hints() const override { return true; }
  void not_wanted_soon(PartId id) override {
    left(id);
    put(id, archived_, 1);
  }
  void clear() override { wanted_ = archived_ = {}; }
  PartId next() override { return archived_.size() > 0 ? archived_.first() : wanted_.first(); }

 private:
  void put(PartId id, PartList& list, std::uint8_t number) {
    table_[id].list = number & 7;
    list.append(table_, id);
  }

  PartTable& table_;
  PartList wanted_, archived_;
};

/// Two lists: what came early stays.
class FirstTouch final : public Victims {
 public:
  explicit FirstTouch(PartTable& table) : table_(table) {}
  void arrived(PartId id, const Arrival& arrival) override {
    table_[id].list = arrival.crowded ? 1 : 0;
    list(id).append(table_, id);
  }
  void left(PartId id) override { list(id).remove(table_, id); }
  void clear() override { early_ = late_ = {}; }
  PartId next() override { return late_.size() > 0 ? late_.first() : early_.first(); }

 private:
  PartList& list(PartId id) { return table_[id].list != 0 ? late_ : early_; }

  PartTable& table_;
  PartList early_, late_;
};

/// The buckets of the histogram are lists, the coldest first; list 0 holds what sweeps brought. Parts cool
/// while they wait in a list, so the oldest of each list are looked at again whenever somebody has to leave.
class Keeper final : public Victims {
 public:
  explicit Keeper(PartTable& table) : table_(table) {}

  void arrived(PartId id, const Arrival& arrival) override {
    note(id, arrival);
    const bool passes = arrival.why == Arrival::Why::swept && hotness(id) <= Heat::kOne / 2;
    // What could not leave is not to be chosen again at once.
    const std::size_t least = arrival.why == Arrival::Why::stayed ? 2 : 0;
    put(id, passes ? 0 : std::max(bucket(id), least));
  }
  void grew(PartId id, const Arrival& arrival) override {
    note(id, arrival);
    left(id);
    put(id, bucket(id));
  }
  void left(PartId id) override { lists_[table_[id].list].remove(table_, id); }
  bool follows_hints() const override { return true; }
  void not_wanted_soon(PartId id) override {
    left(id);
    put(id, 0);
  }
  void clear() override { lists_ = {}; }

  PartId next() override {
    for (std::size_t i = kLists - 1; i > 1; --i) cool(i);
    for (std::size_t tries = 0; tries < kLists; ++tries) {
      const PartId id = first();
      if (id == kNoPart || !sampled_ || table_[id].list > 1 || !is_found_hot(id)) return id;
      left(id);
      put(id, 2);
    }
    return first();
  }

  void ask_samples(Sampled sampled) override { sampled_ = std::move(sampled); }
  unsigned hotness(PartId id) const override { return table_[id].heat.value(round_); }

 private:
  static constexpr std::size_t kLists = 6;
  static constexpr std::uint64_t kFillsOfRound = 1;
  // More than one reference in a round, more than two of them, four, eight.
  static constexpr std::array<unsigned, kLists - 2> kBounds{Heat::kOne / 2, Heat::kOne, 2 * Heat::kOne,
                                                            4 * Heat::kOne};

  void note(PartId id, const Arrival& arrival) {
    // A round ends when fast memory has been filled anew once. With longer ones what was hot keeps its place
    // from what is hot now.
    arrived_pages_ += arrival.pages;
    if (arrived_pages_ > kFillsOfRound * arrival.limit_pages) {
      arrived_pages_ = 0;
      ++round_;
    }
    if (arrival.why == Arrival::Why::stayed) return;
    // One page says that a sixteenth of its part is in use. Where single pages come, every sixteenth of them
    // counts for its part: then parts hardly differ in heat, and leave in the order in which they came.
    due_ += arrival.pages * (arrival.why == Arrival::Why::rescued ? 2 : 1);
    const auto references = static_cast<unsigned>(due_ / kPagesOfPart);
    due_ %= kPagesOfPart;
    if (references > 0) table_[id].heat.reference(round_, references);
  }
  std::size_t bucket(PartId id) const {
    std::size_t list = 1;
    for (const unsigned bound : kBounds) list += hotness(id) > bound;
    return list;
  }
  void put(PartId id, std::size_t list) {
    table_[id].list = list & 7;
    lists_[list].append(table_, id);
  }
  void cool(std::size_t list) {
    for (int i = 0; i < 2; ++i) {
      const PartId id = lists_[list].first();
      if (id == kNoPart || bucket(id) >= list) return;
      left(id);
      put(id, bucket(id));
    }
  }
  PartId first() const {
    for (const PartList& list : lists_) {
      if (list.size() > 0) return list.first();
    }
    return kNoPart;
  }
  bool is_found_hot(PartId id) const { return sampled_(table_.address(id)) > 0.5; }

  PartTable& table_;
  std::array<PartList, kLists> lists_{};
  std::uint16_t round_ = 0;
  std::uint64_t arrived_pages_ = 0;
  unsigned due_ = 0;  // pages that came and have not counted yet
  Sampled sampled_;
};

}  // namespace

std::vector<std::string_view> victim_policies() { return {"keeper", "lru", "async-lmp", "first-touch"}; }

Result<std::unique_ptr<Victims>> make_victims(std::string_view name, PartTable& table) {
  if (name == "keeper") return std::unique_ptr<Victims>(std::make_unique<Keeper>(table));
  if (name == "lru") return std::unique_ptr<Victims>(std::make_unique<Lru>(table));
  if (name == "async-lmp") return std::unique_ptr<Victims>(std::make_unique<AsyncLmp>(table));
  if (name == "first-touch") return std::unique_ptr<Victims>(std::make_unique<FirstTouch>(table));
  std::string names;
  for (const std::string_view known : victim_policies())
    names += (names.empty() ? "" : ", ") + std::string(known);
  return Error{ErrorCode::invalid_argument,
               "there is no policy '" + std::string(name) + "' for pages: choose one of " + names};
}

}  // namespace terrace::pages
