// EnvironmentError reports a failing environment: a disk that is full or broken, memory that the system
// refuses, a lost device.
//
// It is thrown by the operation that met the failure. The message names what was asked, what was there and
// what to try; the fields let a program react without reading the text.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace terrace {

class EnvironmentError : public std::runtime_error {
 public:
  struct Place {
    std::string tier;          ///< the tier's spec, e.g. `file:/data/spill:200GiB`
    std::string path;          ///< empty unless the tier is a file
    std::uint64_t offset = 0;  ///< where in the tier
    int cause = 0;             ///< the system's errno, or 0 if there is none
  };

  EnvironmentError(const std::string& message, Place place)
      : std::runtime_error(message), place_(std::move(place)) {}

  const Place& place() const noexcept { return place_; }

 private:
  Place place_;
};

}  // namespace terrace
