#include "base/system.hpp"

#ifdef TERRACE_HAS_URING
#include <liburing.h>
#endif

namespace terrace {

#ifdef TERRACE_HAS_URING
namespace {

// Returns 0, or the errno of the first step that failed.
int send_empty_request(io_uring& ring) {
  io_uring_sqe* request = io_uring_get_sqe(&ring);
  io_uring_prep_nop(request);
  const int submitted = io_uring_submit(&ring);
  if (submitted < 0) return -submitted;
  io_uring_cqe* completion = nullptr;
  const int waited = io_uring_wait_cqe(&ring, &completion);
  if (waited < 0) return -waited;
  const int result = completion->res;
  io_uring_cqe_seen(&ring, completion);
  return -result;
}

}  // namespace

Uring probe_uring() {
  io_uring ring{};
  const int made = io_uring_queue_init(4, &ring, 0);
  if (made < 0) return {true, -made};
  const int error = send_empty_request(ring);
  io_uring_queue_exit(&ring);
  return {true, error};
}
#else
Uring probe_uring() { return {}; }
#endif

}  // namespace terrace
