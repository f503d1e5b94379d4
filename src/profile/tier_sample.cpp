// SPDX-License-Identifier: Apache-2.0
#include "profile/tier_sample.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace terrace {

namespace fs = std::filesystem;

Result<TierSpec> sample_of(const TierSpec& spec, Bytes area) {
  TierSpec sample = spec;
  sample.capacity = area;
  sample.keep = false;
  if (spec.path.empty()) return sample;
  std::error_code unknown;
  if (!fs::is_character_file(spec.path, unknown)) {
    sample.path += ".calibrate";
  } else if (spec.keep) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} keeps what is on the device, which measuring would overwrite: leave out `keep`",
                    to_string(spec))};
  }
  return sample;
}

std::string rates_key(TierSpec spec) {
  spec.capacity = {0};
  spec.keep = false;
  if (spec.kind == TierKind::file) {
    std::error_code unknown;
    spec.path = fs::weakly_canonical(fs::absolute(spec.path).parent_path(), unknown).native();
  }
  return to_string(spec);
}

}  // namespace terrace
