// SPDX-License-Identifier: Apache-2.0
// CopyMemory: room for copies that are held for a while, in memory that somebody lends and, where that is
// full, in the system's. What the system gives is counted: it is beside the budget of a run.
//
//   room   a stretch that is held as long as it is in scope
//
// One thread at a time. Lent memory outlives this, and this outlives its rooms.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/memory_limit.hpp"
#include "terrace/heap.hpp"

namespace terrace {

class CopyMemory {
 public:
  class Room {
   public:
    Room() = default;
    Room(Room&& other) noexcept { swap(other); }
    Room& operator=(Room&& other) noexcept {
      Room(std::move(other)).swap(*this);
      return *this;
    }
    ~Room() { give_back(); }

    /// Empty where nothing was taken.
    std::span<std::byte> bytes() const { return bytes_; }

   private:
    friend class CopyMemory;
    void swap(Room& other) noexcept;
    void give_back() noexcept;

    CopyMemory* of_ = nullptr;
    std::span<std::byte> bytes_;
    Slot slot_;                         // in lent memory
    std::unique_ptr<std::byte[]> own_;  // else the system's
  };

  /// `lent`: begins at a multiple of 64 bytes. `available`: how much memory the system has left.
  explicit CopyMemory(
      std::span<std::byte> lent, std::function<Bytes()> available = [] { return memory_limit().available; });
  CopyMemory(const CopyMemory&) = delete;
  CopyMemory& operator=(const CopyMemory&) = delete;

  /// At a multiple of 64 bytes where it is lent. Throws EnvironmentError where the system has not as much.
  Room take(Bytes size);
  /// The most bytes of the system's at once.
  Bytes most_held() const { return most_held_; }

 private:
  std::span<std::byte> lent_;
  Heap heap_;
  std::function<Bytes()> available_;
  Bytes held_, most_held_;
};

}  // namespace terrace
