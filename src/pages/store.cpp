// SPDX-License-Identifier: Apache-2.0
#include "pages/store.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>

#include "base/check.hpp"
#include "pages/file_store.hpp"
#include "terrace/error.hpp"

namespace terrace::pages {
namespace {

/// An addressable tier: reading is copying.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Tier& tier) : tier_(tier), slots_(slots_in(tier.description().capacity)) {}

  const std::string& name() const noexcept override { return tier_.description().name; }
  const std::string& path() const noexcept override { return tier_.description().spec.path; }
  std::uint32_t slots() const noexcept override { return slots_; }

  int read(std::uint64_t offset, std::byte* to, std::size_t bytes) noexcept override {
    return paced(Access::read, bytes, [&] { std::memcpy(to, tier_.memory() + offset, bytes); });
  }
  int write(std::uint64_t offset, std::span<const iovec> from) noexcept override {
    return paced(Access::write, total(from), [&] {
      for (const iovec& piece : from) {
        std::memcpy(tier_.memory() + offset, piece.iov_base, piece.iov_len);
        offset += piece.iov_len;
      }
    });
  }

 private:
  template <class Copy>
  int paced(Access access, std::size_t bytes, Copy copy) noexcept {
    const auto began = std::chrono::steady_clock::now();
    copy();
    try {
      tier_.pace(access, Bytes{bytes}, std::chrono::steady_clock::now() - began);
    } catch (const EnvironmentError& error) {
      return error.place().cause != 0 ? error.place().cause : EIO;
    }
    return 0;
  }

  Tier& tier_;
  std::uint32_t slots_;
};

/// A block tier whose only queue is shared: one request at a time.
class QueueStore final : public Store {
 public:
  explicit QueueStore(Tier& tier) : tier_(tier), slots_(slots_in(tier.description().capacity)) {}

  const std::string& name() const noexcept override { return tier_.description().name; }
  const std::string& path() const noexcept override { return tier_.description().spec.path; }
  std::uint32_t slots() const noexcept override { return slots_; }

  int read(std::uint64_t offset, std::byte* to, std::size_t bytes) noexcept override {
    return transfer(Access::read, offset, to, bytes);
  }
  int write(std::uint64_t offset, std::span<const iovec> from) noexcept override {
    for (const iovec& piece : from) {
      const int cause =
          transfer(Access::write, offset, static_cast<std::byte*>(piece.iov_base), piece.iov_len);
      if (cause != 0) return cause;
      offset += piece.iov_len;
    }
    return 0;
  }

 private:
  int transfer(Access access, std::uint64_t offset, std::byte* memory, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    while (bytes > 0) {
      const Piece piece{memory, bytes};
      tier_.blocks()->submit({access, offset, {&piece, 1}, 0});
      BlockCompletion completion;
      while (tier_.blocks()->wait({&completion, 1}) == 0) {
      }
      if (completion.result <= 0) return completion.result < 0 ? static_cast<int>(-completion.result) : EIO;
      const auto done = static_cast<std::size_t>(completion.result);
      offset += done;
      memory += done;
      bytes -= done;
    }
    return 0;
  }

  Tier& tier_;
  std::uint32_t slots_;
  std::mutex mutex_;
};

/// A store that owns its tier.
class OwningStore final : public Store {
 public:
  OwningStore(std::unique_ptr<Tier> tier) : tier_(std::move(tier)), store_(store_on(*tier_)) {}
  const std::string& name() const noexcept override { return store_->name(); }
  const std::string& path() const noexcept override { return store_->path(); }
  std::uint32_t slots() const noexcept override { return store_->slots(); }
  int read(std::uint64_t offset, std::byte* to, std::size_t bytes) noexcept override {
    return store_->read(offset, to, bytes);
  }
  int write(std::uint64_t offset, std::span<const iovec> from) noexcept override {
    return store_->write(offset, from);
  }

 private:
  std::unique_ptr<Tier> tier_;
  std::unique_ptr<Store> store_;
};

}  // namespace

std::unique_ptr<Store> store_on(Tier& tier) {
  if (tier.memory() != nullptr) return std::make_unique<MemoryStore>(tier);
  check(tier.blocks() != nullptr, "parts are stored in memory or on a disk");
  return std::make_unique<QueueStore>(tier);
}

Result<std::unique_ptr<Store>> open_store(const TierSpec& spec) {
  if (lies_on_device(spec))
    return Error{
        ErrorCode::unsupported,
        fmt::format("{} cannot hold pages of a program: name a disk or slower memory", to_string(spec))};
  if (spec.kind == TierKind::file && !spec.keep && spec.read_rate.value == 0 && spec.write_rate.value == 0)
    return open_file_store({to_string(spec), spec.path, spec.capacity, spec.buffered});
  auto tier = open_tier(spec);
  if (!tier) return tier.error();
  return std::unique_ptr<Store>(std::make_unique<OwningStore>(*std::move(tier)));
}

}  // namespace terrace::pages
