// Measures how fast a mover and fio read and write a disk with the same requests, in turns.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "mover_memory.hpp"

namespace terrace::bench {

inline std::optional<std::string> output_of(const std::string& command) {
  const std::unique_ptr<FILE, decltype(&pclose)> pipe(popen(command.c_str(), "r"), &pclose);
  if (!pipe) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    text.append(buffer.data(), count);
  }
  return text;
}

inline bool have_fio() { return output_of("fio --version 2>/dev/null").value_or("").starts_with("fio"); }

/// Runs fio on a file that is removed at the end.
class Fio {
 public:
  Fio(const std::filesystem::path& folder, Bytes size, const BlockQueue& like)
      : file_(folder / "bench-mover-fio"),
        options_(fmt::format("--name=bench --filename='{}' --size={} --bs={} --iodepth={} --direct=1 "
                             "--ioengine=io_uring --output-format=json",
                             file_.string(), size.count, like.request_size().count, like.depth())) {}
  ~Fio() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  Fio(const Fio&) = delete;

  /// Returns GB/s.
  double rate(Access access) const {
    const char* const name = access == Access::read ? "read" : "write";
    const auto text = output_of(fmt::format("fio {} --rw={} 2>/dev/null", options_, name));
    const auto result = nlohmann::json::parse(text.value_or("").substr(text.value_or("").find('{')));
    return result["jobs"][0][name]["bw_bytes"].get<double>() / 1e9;
  }

 private:
  std::filesystem::path file_;
  std::string options_;
};

inline constexpr Bytes kDisk{2 * kMemory};

/// Returns the moves of the whole disk, tier 2, from or to the memory of tiers 0 and 1.
inline std::vector<Move> whole_disk(Access access) {
  std::vector<Move> moves;
  for (const std::uint32_t memory : {0u, 1u}) {
    const Extent here{{memory}, 0, {kMemory}}, there{{2}, memory * kMemory, {kMemory}};
    moves.push_back(access == Access::read ? Move{there, here} : Move{here, there});
  }
  return moves;
}

inline double disk_rate(Mover& mover, Access access) {
  return rate(kDisk.count, [&] { mover.move(whole_disk(access)); });
}

}  // namespace terrace::bench
