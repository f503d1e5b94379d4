// SPDX-License-Identifier: Apache-2.0
#include "pages/victims.hpp"

#include <string>

namespace terrace::pages {
namespace {

class Lru final : public Victims {
 public:
  explicit Lru(PartTable& table) : table_(table) {}
  void arrived(PartId id, bool) override { list_.append(table_, id); }
  void left(PartId id) override { list_.remove(table_, id); }
  void clear() override { list_ = {}; }
  PartId next() const override { return list_.first(); }

 private:
  PartTable& table_;
  PartList list_;
};

class FirstTouch final : public Victims {
 public:
  explicit FirstTouch(PartTable& table) : table_(table) {}
  void arrived(PartId id, bool crowded) override {
    table_[id].late = crowded;
    list(id).append(table_, id);
  }
  void left(PartId id) override { list(id).remove(table_, id); }
  void clear() override { early_ = late_ = {}; }
  PartId next() const override { return late_.size() > 0 ? late_.first() : early_.first(); }

 private:
  PartList& list(PartId id) { return table_[id].late ? late_ : early_; }

  PartTable& table_;
  PartList early_, late_;
};

}  // namespace

std::vector<std::string_view> victim_policies() { return {"lru", "first-touch"}; }

Result<std::unique_ptr<Victims>> make_victims(std::string_view name, PartTable& table) {
  if (name == "lru") return std::unique_ptr<Victims>(std::make_unique<Lru>(table));
  if (name == "first-touch") return std::unique_ptr<Victims>(std::make_unique<FirstTouch>(table));
  std::string names;
  for (const std::string_view known : victim_policies())
    names += (names.empty() ? "" : ", ") + std::string(known);
  return Error{ErrorCode::invalid_argument,
               "there is no policy '" + std::string(name) + "' for pages: choose one of " + names};
}

}  // namespace terrace::pages
