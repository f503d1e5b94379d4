// Converts floats to doubles that print as people write them.
#pragma once

namespace terrace {

/// Returns the double with the shortest text that identifies this float, so that 0.1F gives 0.1 and not
/// 0.10000000149. Converted back it is the same float.
double shortest_double(float value);

}  // namespace terrace
