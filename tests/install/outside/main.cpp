#include <iostream>

#include "terrace/tier.hpp"
#include "terrace/version.hpp"

int main() {
  const auto amount = terrace::parse_bytes("8GiB").value();
  // Opening a tier reaches into everything the library itself links.
  const auto tier = terrace::open_tier("dram:1MiB").value();
  tier->memory()[0] = std::byte{1};
  std::cout << "terrace " TERRACE_VERSION " sees " << to_string(amount) << " and a tier of "
            << to_string(tier->description().capacity) << "\n";
}
