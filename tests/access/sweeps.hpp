// SPDX-License-Identifier: Apache-2.0
// Kernels whose accesses are known, page by page.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "profile/access/page_watch.hpp"
#include "terrace/page_memory.hpp"

namespace terrace {

constexpr std::size_t kPage = 4096;

inline PageMemory pages_of_memory(std::size_t pages) { return PageMemory(Bytes{pages * kPage}); }

inline std::unique_ptr<PageWatch> watch(Bytes window = {}) { return PageWatch::start(window).value(); }

inline void read_page(std::span<std::byte> pages, std::size_t page, std::size_t at = 0) {
  [[maybe_unused]] const std::byte value = *static_cast<const volatile std::byte*>(&pages[page * kPage + at]);
}

inline void write_page(std::span<std::byte> pages, std::size_t page, std::byte value = {}) {
  *const_cast<volatile std::byte*>(&pages[page * kPage]) = value;
}

inline std::size_t count_of(std::span<std::byte> pages) { return pages.size() / kPage; }

/// Every cache line, in order.
inline void read_sweep(std::span<std::byte> pages) {
  for (std::size_t i = 0; i < pages.size(); i += 64) read_page(pages, i / kPage, i % kPage);
}

inline void write_sweep(std::span<std::byte> pages) {
  for (std::size_t i = 0; i < count_of(pages); ++i) write_page(pages, i, std::byte(i));
}

/// A load, then a store: the compiler may not make one instruction of them.
inline void add_sweep(std::span<std::byte> pages) {
  for (std::size_t i = 0; i < pages.size(); i += 64) {
    auto* at = const_cast<volatile std::byte*>(&pages[i]);
    auto value = static_cast<unsigned>(*at);
    asm volatile("" : "+r"(value));
    *at = static_cast<std::byte>(value + 1);
  }
}

}  // namespace terrace
