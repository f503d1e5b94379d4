// A SlotMap is a table whose entries keep their address and whose ids are never reused: an id is an index and
// a generation.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace terrace {

/// `Id` is an aggregate {index, generation}. The table is not thread-safe.
template <class Id, class T>
class SlotMap {
 public:
  Id insert(T value) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(entries_.size()));
      entries_.emplace_back();
    }
    const std::uint32_t index = unused_.back();
    unused_.pop_back();
    entries_[index].value.emplace(std::move(value));
    ++size_;
    return Id{index, entries_[index].generation};
  }

  void erase(Id id) {
    check(find(id) != nullptr, "erased twice");
    entries_[id.index].value.reset();
    ++entries_[id.index].generation;
    unused_.push_back(id.index);
    --size_;
  }

  /// Returns nullptr if the id is no longer valid.
  T* find(Id id) {
    if (id.index >= entries_.size()) return nullptr;
    Entry& entry = entries_[id.index];
    return entry.generation == id.generation && entry.value ? &*entry.value : nullptr;
  }

  /// pre: the id is valid
  T& operator[](Id id) {
    T* value = find(id);
    check(value != nullptr, "this name is no longer, or was never, in use");
    return *value;
  }

  std::size_t size() const { return size_; }

  template <class Visit>
  void each(Visit visit) {
    for (std::uint32_t index = 0; index < entries_.size(); ++index) {
      Entry& entry = entries_[index];
      if (entry.value) visit(Id{index, entry.generation}, *entry.value);
    }
  }

 private:
  struct Entry {
    std::optional<T> value;
    std::uint32_t generation = 1;
  };
  std::deque<Entry> entries_;
  std::vector<std::uint32_t> unused_;
  std::size_t size_ = 0;
};

}  // namespace terrace
