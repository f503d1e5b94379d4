// Floats as people write them.
#pragma once

namespace terrace {

/// The double of the shortest text that means this float; converted back it is the same float. So 0.1F gives
/// 0.1, not 0.10000000149.
double shortest_double(float value);

}  // namespace terrace
