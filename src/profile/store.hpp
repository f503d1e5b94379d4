// SPDX-License-Identifier: Apache-2.0
// ProfileStore: what was measured before, in a file that programs share: times and accesses of kernels, and
// what real steps decided.
//
// What was measured is found by the kernel's key (kernel_key.hpp) and that of what computed it, so a model
// that shares kernels with an earlier one need not measure them again. Processes may use one file at once.
// One thread at a time. Format: docs/formats/profile.md.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/profile.hpp"

namespace terrace {

class Database;

class ProfileStore {
 public:
  /// Opens the file or begins a new one; its folder is made if need be. A damaged file, or one of another
  /// version of this format, is moved aside and a new one begun: see note(). Fails where the path holds
  /// something else; throws EnvironmentError where the disk does not let it.
  static Result<ProfileStore> open(const std::filesystem::path& path);
  ProfileStore(ProfileStore&&) noexcept;
  ProfileStore& operator=(ProfileStore&&) noexcept;
  ~ProfileStore();

  /// Returns what the user should know about opening it; mostly empty.
  const std::string& note() const { return note_; }

  /// Finds the time with all operands in tier 0; `tiers` is left empty. What cannot be a time is not found.
  std::optional<PlacedTime> find(std::string_view kernel, std::string_view compute) const;
  /// Replaces what was there. After it, and after a crash in the middle of it, the file is whole.
  void save(std::string_view kernel, std::string_view compute, const PlacedTime& time);

  /// Finds the time with operands elsewhere, in a placement named by any text; `tiers` is left empty. A time
  /// without samples was left out, since time was up. What can be neither is not found.
  std::optional<PlacedTime> find_placed(std::string_view kernel, std::string_view compute,
                                        std::string_view placement) const;
  /// All of them or none, by the names of their placements. Replaces what was there.
  void save_placed(std::string_view kernel, std::string_view compute,
                   const std::map<std::string, PlacedTime>& times);

  /// Returns what each operand was counted at: inputs, outputs, workspace; empty where it was not, or cannot
  /// be.
  std::vector<Accesses> find_accesses(std::string_view kernel, std::string_view compute) const;
  /// Replaces what was there, as a whole.
  void save_accesses(std::string_view kernel, std::string_view compute,
                     const std::vector<Accesses>& operands);

  /// Returns what steps of a graph decided, by its fingerprint and a question of any text.
  std::optional<std::string> find_decision(std::string_view graph, std::string_view compute,
                                           std::string_view question) const;
  /// Replaces what was there.
  void save_decision(std::string_view graph, std::string_view compute, std::string_view question,
                     std::string_view answer);

 private:
  template <class Work>
  void in_transaction(Work work);

  ProfileStore(std::filesystem::path path, std::unique_ptr<Database> database, std::string note);
  std::filesystem::path path_;
  std::unique_ptr<Database> database_;
  std::string note_;
};

}  // namespace terrace
