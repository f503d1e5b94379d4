// array<T> and vector<T> own managed objects of one element type. The elements live wherever the manager's
// policy puts them; a view pins them while it is in scope.
//
//   terrace::array<float> a(manager, 1'000'000);
//   { auto view = a.write(); std::fill(view.begin(), view.end(), 0.f); }   // stays put in here
//   a.archive();                                                           // may go to slow memory from here
//   on
//
// T is trivially copyable, because elements move as bytes. The handle is not thread-safe, but many threads
// may hold read views of one array at once. A view must end before the array is resized, and both before
// their manager.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "terrace/manager.hpp"

namespace terrace {

/// A view pins its elements while it is in scope. `T` is const for reading.
template <class T>
class view : public std::span<T> {
 public:
  TierId tier() const noexcept { return pin_.tier(); }

 private:
  template <class>
  friend class array;
  view(Pin pin, std::size_t size)
      : std::span<T>(reinterpret_cast<T*>(pin.data()), size), pin_(std::move(pin)) {}
  Pin pin_;
};

template <class T>
class array {
  static_assert(std::is_trivially_copyable_v<T>, "elements move between tiers as plain bytes");

 public:
  array() = default;
  /// The elements are undefined. Throws ResultError if no tier has room or `size` is zero.
  array(Manager& manager, std::size_t size)
      : manager_(&manager), object_(manager.create(bytes_of(size)).value()), size_(size) {}
  array(Manager& manager, std::size_t size, const T& value) : array(manager, size) {
    auto elements = write();
    std::fill(elements.begin(), elements.end(), value);
  }
  array(array&& other) noexcept
      : manager_(std::exchange(other.manager_, nullptr)),
        object_(other.object_),
        size_(std::exchange(other.size_, 0)) {}
  array& operator=(array&& other) noexcept {
    array taken(std::move(other));
    std::swap(manager_, taken.manager_);
    std::swap(object_, taken.object_);
    std::swap(size_, taken.size_);
    return *this;
  }
  ~array() {
    if (manager_ != nullptr) manager_->destroy(object_);
  }

  std::size_t size() const noexcept { return size_; }
  ObjectId object() const noexcept { return object_; }

  /// These throw ResultError where the array was retired or no addressable tier can be cleared, and
  /// EnvironmentError where moving fails; the try_ forms return the former as an Error.
  view<const T> read() const { return try_read().value(); }
  view<T> write() { return try_write().value(); }
  Result<view<const T>> try_read() const { return pinned<const T>(Access::read, size_); }
  Result<view<T>> try_write() { return pinned<T>(Access::write, size_); }

  // Hints; on an empty array they do nothing.
  void will_use() const { hint(&Manager::will_use); }
  void will_read() const { hint(&Manager::will_read); }
  void will_write() const { hint(&Manager::will_write); }
  void archive() const { hint(&Manager::archive); }
  void retire() { hint(&Manager::retire); }

 private:
  template <class>
  friend class vector;

  // A count whose bytes overflow 64 bits is too large for every tier, too.
  static Bytes bytes_of(std::size_t size) {
    return {size <= std::numeric_limits<std::uint64_t>::max() / sizeof(T)
                ? size * sizeof(T)
                : std::numeric_limits<std::uint64_t>::max()};
  }
  void hint(void (Manager::*method)(ObjectId)) const {
    if (manager_ != nullptr) (manager_->*method)(object_);
  }

  template <class U>
  Result<view<U>> pinned(Access access, std::size_t count) const {
    if (manager_ == nullptr)
      return Error{ErrorCode::invalid_argument, "an empty array has no elements to view"};
    Result<Pin> pin = manager_->pin(object_, access);
    if (!pin) return pin.error();
    return view<U>(std::move(*pin), count);
  }

  Manager* manager_ = nullptr;
  ObjectId object_;
  std::size_t size_ = 0;
};

/// A vector is an array that grows. Growing creates a larger object and copies, as std::vector does.
template <class T>
class vector {
 public:
  explicit vector(Manager& manager) : manager_(&manager) {}
  vector(vector&& other) noexcept
      : manager_(other.manager_), storage_(std::move(other.storage_)), size_(std::exchange(other.size_, 0)) {}
  vector& operator=(vector&& other) noexcept {
    manager_ = other.manager_;
    storage_ = std::move(other.storage_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return storage_.size(); }
  bool empty() const noexcept { return size_ == 0; }

  void reserve(std::size_t capacity) {
    if (capacity <= storage_.size()) return;
    array<T> larger(*manager_, capacity);
    if (size_ > 0) {
      const auto from = storage_.read();
      auto to = larger.write();
      std::copy_n(from.begin(), size_, to.begin());
    }
    storage_ = std::move(larger);
  }
  /// Appends many elements with a single pin. pre: `elements` are not this vector's own
  void append(std::span<const T> elements) {
    if (elements.empty()) return;
    if (size_ + elements.size() > capacity()) reserve(std::max(size_ + elements.size(), 2 * capacity()));
    auto to = storage_.write();
    std::copy(elements.begin(), elements.end(), to.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += elements.size();
  }
  void push_back(T element) { append({&element, 1}); }
  void resize(std::size_t size, const T& value = T{}) {
    reserve(size);
    if (size > size_) {
      auto elements = storage_.write();
      std::fill(elements.begin() + static_cast<std::ptrdiff_t>(size_),
                elements.begin() + static_cast<std::ptrdiff_t>(size), value);
    }
    size_ = size;
  }
  void clear() noexcept { size_ = 0; }

  /// pre: !empty()
  view<const T> read() const { return storage_.template pinned<const T>(Access::read, size_).value(); }
  view<T> write() { return storage_.template pinned<T>(Access::write, size_).value(); }

  void will_use() const { storage_.will_use(); }
  void will_read() const { storage_.will_read(); }
  void will_write() const { storage_.will_write(); }
  void archive() const { storage_.archive(); }
  void retire() { storage_.retire(); }

 private:
  Manager* manager_;
  array<T> storage_;
  std::size_t size_ = 0;
};

}  // namespace terrace
