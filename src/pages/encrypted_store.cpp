// SPDX-License-Identifier: Apache-2.0
// A store whose contents only this process can read (file_store.hpp).
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "pages/cipher.hpp"
#include "pages/file_store.hpp"
#include "pages/reserved.hpp"

namespace terrace::pages {
namespace {

/// Pages are encrypted one by one. Each has a number that grows with every write, so that no piece of the key
/// stream is ever used twice.
class EncryptedStore final : public Store {
 public:
  EncryptedStore(std::unique_ptr<Store> inner, const ChaCha20::Key& key)
      : inner_(std::move(inner)),
        cipher_(std::make_unique<Reserved<ChaCha20>>(1, "a key")),
        writes_(std::size_t{inner_->slots()} * kPagesOfPart, "the numbers of encrypted pages"),
        buffer_(kChunk, "a buffer to encrypt in") {
    new (cipher_->data()) ChaCha20(key);
    mlock(cipher_->data(), sizeof(ChaCha20));  // where it is refused the key may be swapped out
  }

  const std::string& name() const noexcept override { return inner_->name(); }
  const std::string& path() const noexcept override { return inner_->path(); }
  std::uint32_t slots() const noexcept override { return inner_->slots(); }
  int descriptor() const noexcept override { return inner_->descriptor(); }

  int read(std::uint64_t offset, std::byte* to, std::size_t bytes) noexcept override {
    if (const int cause = inner_->read(offset, to, bytes)) return cause;
    decode(offset, to, bytes);
    return 0;
  }
  void decode(std::uint64_t offset, std::byte* data, std::size_t bytes) noexcept override {
    each_page(offset, bytes, [&](std::uint64_t page, std::size_t at) { apply(page, data + at, data + at); });
  }

  int write(std::uint64_t offset, std::span<const iovec> from) noexcept override {
    const std::lock_guard lock(mutex_);
    for (const iovec& piece : from) {
      const auto* data = static_cast<const std::byte*>(piece.iov_base);
      for (std::size_t done = 0; done < piece.iov_len; done += buffer_.size()) {
        const std::size_t bytes = std::min(piece.iov_len - done, buffer_.size());
        each_page(offset, bytes, [&](std::uint64_t page, std::size_t at) {
          ++writes_[page];
          apply(page, data + done + at, buffer_.data() + at);
        });
        const iovec encrypted{buffer_.data(), bytes};
        if (const int cause = inner_->write(offset, {&encrypted, 1})) return cause;
        offset += bytes;
      }
    }
    return 0;
  }

  std::unique_ptr<Store> for_a_child() const override {
    auto inner = inner_->for_a_child();
    return inner ? encrypted(std::move(inner)) : nullptr;
  }

 private:
  template <class Visit>
  static void each_page(std::uint64_t offset, std::size_t bytes, Visit visit) {
    for (std::size_t at = 0; at < bytes; at += kPage) visit((offset + at) / kPage, at);
  }
  void apply(std::uint64_t page, const std::byte* from, std::byte* to) noexcept {
    const ChaCha20::Nonce nonce{static_cast<std::uint32_t>(page), static_cast<std::uint32_t>(page >> 32),
                                writes_[page]};
    (*cipher_)[0].apply(nonce, 0, from, to, kPage);
  }

  std::unique_ptr<Store> inner_;
  std::unique_ptr<Reserved<ChaCha20>> cipher_;  // in pages that no core file shows
  Reserved<std::uint32_t> writes_;
  std::mutex mutex_;  // guards the buffer
  Reserved<std::byte> buffer_;
};

}  // namespace

std::unique_ptr<Store> encrypted(std::unique_ptr<Store> store) {
  ChaCha20::Key key{};
  auto* const bytes = reinterpret_cast<char*>(key.data());
  for (std::size_t got = 0; got < sizeof key;) {
    const ssize_t more = getrandom(bytes + got, sizeof key - got, 0);
    if (more < 0 && errno != EINTR) return nullptr;
    got += static_cast<std::size_t>(std::max<ssize_t>(more, 0));
  }
  auto made = std::make_unique<EncryptedStore>(std::move(store), key);
  explicit_bzero(key.data(), sizeof key);
  return made;
}

}  // namespace terrace::pages
