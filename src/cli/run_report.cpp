// SPDX-License-Identifier: Apache-2.0
#include "cli/run_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pages/geometry.hpp"

namespace terrace::cli {
namespace {

using pages::RunRow;

double seconds_of(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

/// Why the program was slower than with all its memory, in one sentence.
std::string reason_for_waiting(const RunRow& all, double seconds) {
  const double waited = seconds_of(all.waiting_ns);
  if (all.lost > 0) return "pages were lost: the disk could not be read";
  if (all.kept > 0) return "the disk was full: pages stayed in memory beyond --fast";
  if (all.fetches == 0) return "everything fitted: the disk was never read";
  if (all.fetches == all.unpacked_faults)
    return fmt::format(
        "compressed memory held what did not fit: the disk was never read, and its threads "
        "waited {:.1f} s for pages",
        waited);
  const double share = 100 * waited / std::max(seconds, 1e-9);
  const double each = waited / static_cast<double>(std::max<std::uint64_t>(all.faults, 1)) * 1e6;
  std::string text = fmt::format(
      "its threads waited {:.1f} s for pages ({:.0f}% of the run, {:.0f} us a fault)", waited, share, each);
  if (all.room_waits * 10 > all.fetches)
    text += fmt::format("; {} faults waited until others had left: the disk writes too slowly for it",
                        all.room_waits);
  else if ((all.fetches - std::min(all.fetches, all.unpacked_faults)) * pages::kPart * 2 > all.read)
    text += "; its reads are scattered, one part at a time";
  return text;
}

using Amount = std::uint64_t RunRow::*;
/// These are sums over all processes of a run; of memory, only processes that still run count.
constexpr Amount kCounters[] = {
    &RunRow::faults,         &RunRow::zeroed,    &RunRow::opened,      &RunRow::fetches,
    &RunRow::rescues,        &RunRow::read,      &RunRow::read_ahead,  &RunRow::written,
    &RunRow::left_clean,     &RunRow::left_zero, &RunRow::waiting_ns,  &RunRow::room_waits,
    &RunRow::promoted,       &RunRow::samples,   &RunRow::sampled_hot, &RunRow::sampling_ns,
    &RunRow::intervals,      &RunRow::stretches, &RunRow::stuck,       &RunRow::kept,
    &RunRow::lost,           &RunRow::forks,     &RunRow::unpacked,    &RunRow::packed,
    &RunRow::unpacked_faults};
constexpr Amount kOfTheLiving[] = {&RunRow::resident, &RunRow::unmanaged, &RunRow::stored};
constexpr Amount kLargest[] = {&RunRow::peak_resident, &RunRow::peak_managed, &RunRow::peak_packed_memory,
                               &RunRow::longest_ns, &RunRow::overdue};

}  // namespace

std::vector<RunRow> rows_of(const pages::RunBoard& board) {
  const std::uint32_t count = std::min(board.rows.load(), pages::RunBoard::kRows);
  return {board.row, board.row + count};
}

RunRow sum_of(const std::vector<RunRow>& rows) {
  RunRow sum;
  for (const RunRow& row : rows) {
    sum.managed += row.managed;
    for (const auto counter : kCounters) sum.*counter += row.*counter;
    for (const auto amount : kOfTheLiving) sum.*amount += row.ended == 0 ? row.*amount : 0;
    for (const auto largest : kLargest) sum.*largest = std::max(sum.*largest, row.*largest);
    sum.largest_overhead = std::max(sum.largest_overhead, row.largest_overhead);
  }
  return sum;
}

std::string progress_text(const RunRow& now, double seconds) {
  return fmt::format("{:.0f} s: {} resident, {} on the disk, {} faults, {} read, {} written, {:.1f} s waited",
                     seconds, readable(Bytes{now.resident + now.unmanaged}), readable(Bytes{now.stored}),
                     now.faults, readable(Bytes{now.read}), readable(Bytes{now.written}),
                     seconds_of(now.waiting_ns));
}

std::string summary_text(const RunOutcome& outcome) {
  const RunRow all = sum_of(outcome.processes);
  std::string text = fmt::format(
      "terrace: {:.1f} s in {} of memory, of which {} were used at most; {} were managed in {} process{}\n",
      outcome.seconds, readable(outcome.fast), readable(Bytes{all.peak_resident}),
      readable(Bytes{all.peak_managed}), all.managed, all.managed == 1 ? "" : "es");
  text += fmt::format(
      "terrace: {} faults: {} first touches, {} from the disk, {} still in memory, {} first writes; {} read "
      "({} ahead), "
      "{} written, {} left unwritten\n",
      all.faults, all.zeroed, all.fetches - std::min(all.fetches, all.unpacked_faults), all.rescues,
      all.opened, readable(Bytes{all.read}), readable(Bytes{all.read_ahead}), readable(Bytes{all.written}),
      readable(Bytes{all.left_clean + all.left_zero}));
  if (all.packed > 0)
    text += fmt::format(
        "terrace: {} were compressed into {} of memory at most; {} faults were served from there\n",
        readable(Bytes{all.packed}), readable(Bytes{all.peak_packed_memory}), all.unpacked_faults);
  if (all.samples > 0)
    text += fmt::format(
        "terrace: {} samples in {} stretches, {} of them in use: {:.2f} s of profiling, at most {:.1f}% of "
        "an "
        "interval; {} promoted before they were asked for\n",
        all.samples, all.stretches, all.sampled_hot, seconds_of(all.sampling_ns), 100 * all.largest_overhead,
        readable(Bytes{all.promoted}));
  return text + "terrace: " + reason_for_waiting(all, outcome.seconds) + "\n";
}

nlohmann::json to_json(const RunOutcome& outcome) {
  nlohmann::json processes = nlohmann::json::array();
  for (const RunRow& row : outcome.processes) {
    processes.push_back({{"process", row.process},
                         {"managed", row.managed != 0},
                         {"peak_resident_bytes", row.peak_resident},
                         {"peak_managed_bytes", row.peak_managed},
                         {"unmanaged_bytes", row.unmanaged},
                         {"faults", row.faults},
                         {"first_touches", row.zeroed},
                         {"first_writes", row.opened},
                         {"fetches", row.fetches},
                         {"rescues", row.rescues},
                         {"unpacked_fetches", row.unpacked_faults},
                         {"unpacked_bytes", row.unpacked},
                         {"packed_bytes", row.packed},
                         {"peak_packed_memory_bytes", row.peak_packed_memory},
                         {"read_bytes", row.read},
                         {"read_ahead_bytes", row.read_ahead},
                         {"written_bytes", row.written},
                         {"left_clean_bytes", row.left_clean},
                         {"left_zero_bytes", row.left_zero},
                         {"waiting_seconds", seconds_of(row.waiting_ns)},
                         {"longest_wait_seconds", seconds_of(row.longest_ns)},
                         {"waited_for_room", row.room_waits},
                         {"promoted_bytes", row.promoted},
                         {"samples", row.samples},
                         {"samples_in_use", row.sampled_hot},
                         {"stretches", row.stretches},
                         {"intervals", row.intervals},
                         {"profiling_seconds", seconds_of(row.sampling_ns)},
                         {"largest_profiling_share", row.largest_overhead},
                         {"stuck_parts", row.stuck},
                         {"kept_for_space", row.kept},
                         {"lost_pages", row.lost},
                         {"forks", row.forks}});
  }
  return {{"seconds", outcome.seconds},
          {"code", outcome.code},
          {"fast_bytes", outcome.fast.count},
          {"why", reason_for_waiting(sum_of(outcome.processes), outcome.seconds)},
          {"processes", processes}};
}

}  // namespace terrace::cli
