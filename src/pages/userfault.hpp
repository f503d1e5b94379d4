// SPDX-License-Identifier: Apache-2.0
// Userfault is PageControl by Linux's userfaultfd(2), for memory of this process.
//
// Pages leave by UFFDIO_MOVE (Linux 6.8); where the kernel has none and the memory is the library's own, they
// are protected, copied and dropped instead. It owns the descriptor, which closes on exec.
#pragma once

#include <span>

#include "pages/page_control.hpp"
#include "terrace/result.hpp"

namespace terrace::pages {

/// Whose memory is managed.
enum class Ownership {
  ours,       ///< nobody else maps, unmaps or discards it
  a_program,  ///< it comes and goes without asking: events tell, and only MOVE is safe against that
};

/// What the kernel offers; see `terrace doctor`.
struct UserfaultFeatures {
  bool protects = false;  ///< Linux 5.7
  bool poisons = false;   ///< Linux 6.6
  bool moves = false;     ///< Linux 6.8
};

/// Fails with one sentence that says what the system must allow.
Result<UserfaultFeatures> probe_userfault();

class Userfault final : public PageControl {
 public:
  enum class Leaving { best, copied };  ///< `copied`: as on a kernel without MOVE, for tests

  static Result<Userfault> open(Ownership ownership, Leaving leaving = Leaving::best);
  Userfault(Userfault&& other) noexcept;
  Userfault& operator=(Userfault&& other) noexcept;
  ~Userfault() override;

  int descriptor() const noexcept { return descriptor_; }
  const UserfaultFeatures& features() const noexcept { return features_; }
  /// Faults of these pages become events from now on; `staging` memory is only ever a target of take().
  /// Returns 0 or the errno of the refusal.
  int manage(Address start, std::size_t bytes) const;
  int manage_staging(Address start, std::size_t bytes) const;
  /// Returns the next message, or none. Does not block.
  Event read() const;

  PagesDone fill(Address part, PageMask pages, const std::byte* data, Protection protection) override;
  PagesDone take(Address part, PageMask pages, std::byte* frame) override;
  PagesDone put_back(Address part, PageMask pages, std::byte* frame) override;
  bool unprotect(Address part, PageMask pages) override;
  void wake(Address part) override;
  void poison(Address part, PageMask pages) override;

 private:
  Userfault(int descriptor, UserfaultFeatures features) : descriptor_(descriptor), features_(features) {}
  int protect(Address start, std::size_t bytes, Protection protection) const;
  PagesDone take_by_copying(Address part, PageMask pages, std::byte* frame);

  int descriptor_ = -1;
  UserfaultFeatures features_;
};

}  // namespace terrace::pages
