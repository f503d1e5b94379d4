#include "migration/busy_links.hpp"

#include <algorithm>

#include "migration/link_use.hpp"

namespace terrace::migration {

std::size_t BusyLinks::lane(TierId from, TierId to) const {
  const bool out = from == TierId{0};
  const TierId tier = out ? to : from;
  return 2 * std::size_t{tier.index} + (out || is_one_lane(*machine_.link(from, to)) ? 0 : 1);
}

Seconds BusyLinks::end_of(TierId from, TierId to, Bytes size, Seconds now) const {
  return std::max(free_at(from, to), now) + time_beside_kernels(*machine_.link(from, to), size);
}

Seconds BusyLinks::start(TierId from, TierId to, Bytes size, Seconds now) {
  Lane& used = lanes_[lane(from, to)];
  used.free_at = end_of(from, to, size, now);
  used.transfers.push_back({used.free_at, machine_.link(from, to)->compute_loss});
  return used.free_at;
}

Seconds BusyLinks::end_of_kernel(Seconds alone, Seconds now) {
  while (alone > Seconds{0}) {
    double speed = 1;
    Seconds change = Seconds::max();
    for (Lane& lane : lanes_) {
      while (!lane.transfers.empty() && lane.transfers.front().end <= now) lane.transfers.pop_front();
      if (lane.transfers.empty()) continue;
      speed *= 1 - lane.transfers.front().loss;
      change = std::min(change, lane.transfers.front().end);
    }
    if (now + alone / speed <= change) return now + alone / speed;
    alone -= (change - now) * speed;
    now = change;
  }
  return now;
}

}  // namespace terrace::migration
