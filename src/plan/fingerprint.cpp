#include "base/fingerprint.hpp"

#include "terrace/plan.hpp"

namespace terrace {

std::string fingerprint(const Plan& plan) {
  Plan silent = plan;
  silent.remark.clear();
  Fingerprint hash;
  hash.add(to_json(silent));
  return hash.text();
}

}  // namespace terrace
