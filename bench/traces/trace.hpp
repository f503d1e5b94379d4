// An allocation trace is the sequence of a program's allocations and frees. README.md has the format.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace terrace::bench {

/// An event with `bytes` > 0 allocates block `id`, and one with 0 frees it. Ids are dense and may be reused
/// after a free.
struct Event {
  std::uint32_t id;
  std::uint64_t bytes;
};

struct Trace {
  std::string name;
  std::vector<Event> events;
  std::uint32_t ids = 0;  ///< one more than the largest id

  std::uint32_t allocate(std::uint64_t bytes) {
    events.push_back({ids, bytes});
    return ids++;
  }
  void free(std::uint32_t id) { events.push_back({id, 0}); }
};

/// Returns the peak of live bytes, as requested. Throws on a trace that frees or allocates a block twice.
inline std::uint64_t peak_live(const Trace& trace) {
  std::vector<std::uint64_t> sizes(trace.ids);
  std::uint64_t live = 0, peak = 0;
  for (const auto& [id, bytes] : trace.events) {
    if ((bytes > 0) == (sizes[id] > 0)) throw std::runtime_error("trace: block used wrongly twice");
    live += bytes - sizes[id];
    sizes[id] = bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

inline Trace read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the trace " + path);
  Trace trace{path, {}, 0};
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    char verb = 0;
    Event event{};
    words >> verb >> event.id;
    if (verb == 'a') words >> event.bytes;
    const bool known = verb == 'f' || (verb == 'a' && event.bytes > 0);
    if (!words || !known || event.id >= 1u << 28) throw std::runtime_error(path + ": bad line: " + line);
    trace.ids = std::max(trace.ids, event.id + 1);
    trace.events.push_back(event);
  }
  peak_live(trace);
  return trace;
}

inline void write_trace(const Trace& trace, const std::string& path) {
  std::ofstream file(path);
  file << "# " << trace.name << "\n";
  for (const auto& [id, bytes] : trace.events) {
    if (bytes > 0)
      file << "a " << id << ' ' << bytes << '\n';
    else
      file << "f " << id << '\n';
  }
  if (!file.flush()) throw std::runtime_error("cannot write the trace " + path);
}

}  // namespace terrace::bench
