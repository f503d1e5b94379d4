// SPDX-License-Identifier: Apache-2.0
// Whatever texts a caller of the C interface gives as graph, record or options, it gets a status with a
// sentence, or a result; what was planned is safe.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/json_reader.hpp"
#include "capi/options.hpp"
#include "terrace/result.hpp"
#include "terrace/terrace.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// A status that is none of ours, a failure without a sentence and a bug are mistakes of the library.
bool succeeded(int status) {
  require(status >= TERRACE_OK && status < TERRACE_BUG);
  require(status == TERRACE_OK || std::strlen(terrace_last_error()) > 0);
  return status == TERRACE_OK;
}

void plan(const std::string& graph) {
  char *record = nullptr, *verdict = nullptr;
  const char* options = "{\"machine\":\"numa-sentinel\",\"planner\":\"lru\",\"fast\":\"50%\"}";
  if (!succeeded(terrace_plan(graph.c_str(), options, nullptr, &record, nullptr))) return;
  require(succeeded(terrace_verify(record, &verdict)));
  require(std::strstr(verdict, "\"safe\":true") != nullptr);
  terrace_text_free(verdict);
  terrace_text_free(record);
}

void look_at(const std::string& record) {
  char* json = nullptr;
  if (succeeded(terrace_verify(record.c_str(), &json))) terrace_text_free(json);
  if (succeeded(terrace_simulate(record.c_str(), "numa-sentinel", nullptr, &json))) terrace_text_free(json);
}

/// Reading alone: options may name programs and files, which nobody wants run by a fuzzer.
void read(const std::string& options) {
  for (const auto what : {terrace::capi::OptionsOf::plan, terrace::capi::OptionsOf::advice}) {
    try {
      terrace::capi::read_options(options.c_str(), what);
    } catch (const terrace::JsonError&) {
    } catch (const terrace::ResultError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      plan(text);
      break;
    case 1:
      look_at(text);
      break;
    default:
      read(text);
  }
  return 0;
}
