#include "tiers/file.hpp"

namespace terrace {

Result<std::unique_ptr<Tier>> open_file_tier(const TierSpec& spec) {
  return Error{ErrorCode::unsupported, to_string(spec) + ": this build has no file tier"};
}

}  // namespace terrace
