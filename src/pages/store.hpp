// SPDX-License-Identifier: Apache-2.0
// A Store holds parts that are not in fast memory: a disk, or memory that is slower.
//
// Reads and writes block the calling thread, any number of threads may use a store at once, and none of them
// allocates memory or throws: a failure is returned as an errno. Offsets, lengths and addresses are multiples
// of a page.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "pages/geometry.hpp"
#include "terrace/result.hpp"
#include "terrace/tier.hpp"

namespace terrace::pages {

class Store {
 public:
  virtual ~Store() = default;

  /// The tier's spec, and its path where it is a file: for messages.
  virtual const std::string& name() const noexcept = 0;
  virtual const std::string& path() const noexcept = 0;
  virtual std::uint32_t slots() const noexcept = 0;

  /// Each returns 0 or an errno.
  virtual int read(std::uint64_t offset, std::byte* to, std::size_t bytes) noexcept = 0;
  virtual int write(std::uint64_t offset, std::span<const iovec> from) noexcept = 0;
  /// The open file that it uses, or -1. Others may read from it at the same offsets instead of calling
  /// read(), and then call decode() on what they got.
  virtual int descriptor() const noexcept { return -1; }
  virtual void decode(std::uint64_t, std::byte*, std::size_t) noexcept {}
  /// Returns whether reading takes microseconds, so that whoever listens for faults may do it.
  virtual bool is_memory() const noexcept { return false; }
  /// Nobody will read this range before it is written again.
  virtual void forget(std::uint64_t, std::size_t) noexcept {}
  /// What it may use of this computer's memory from now on, and what it does use.
  virtual void set_room(std::uint64_t) noexcept {}
  virtual std::uint64_t memory_in_use() const noexcept { return 0; }
  /// Returns whether there is hardly any room left, though slots may be free.
  virtual bool nearly_full() const noexcept { return false; }
  /// Returns whether new parts had better go to the next store.
  virtual bool declines() noexcept { return false; }
  /// This is a forked child with a copy of the store's memory, made at any moment of a read.
  virtual void go_on_in_child() noexcept {}
  /// Opens another store of the same kind for a forked child, which shares this one with its parent and must
  /// not write to it; nothing where there can be none.
  virtual std::unique_ptr<Store> for_a_child() const { return nullptr; }
};

/// The number of slots in this many bytes.
std::uint32_t slots_in(Bytes capacity);
std::size_t total(std::span<const iovec> pieces);

/// Opens the store that a spec asks for. The space of a `file:` is taken step by step as parts arrive, in a
/// file without a name that only this user can read; other kinds are opened as any tier.
Result<std::unique_ptr<Store>> open_store(const TierSpec& spec);
/// A store on an open tier, which outlives it.
std::unique_ptr<Store> store_on(Tier& tier);

}  // namespace terrace::pages
