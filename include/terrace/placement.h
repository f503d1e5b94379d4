// SPDX-License-Identifier: Apache-2.0
/* Makes PyTorch's operations leave their results at addresses of the caller's, as a plan has them.
 *
 *   placement   takes the place of PyTorch's allocator of processor memory. An operation allocates its results and
 *               its scratch in the same order whenever it is called, so an order that was recorded once tells which
 *               allocation is which. While a thread is placing, its allocations get the addresses stated for
 *               them; at all other times, and on all other threads, memory comes from the C library.
 *
 * What is placed stays the caller's: PyTorch does not free it.
 *
 * Part of the C interface (terrace.h), whose rules hold here, too. Recording and placing belong to the thread that
 * began them. */
#ifndef TERRACE_PLACEMENT_H
#define TERRACE_PLACEMENT_H

#include "terrace/terrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `set_allocator` is the address of c10::SetCPUAllocator(c10::Allocator*, uint8_t). Once in a process; what was
 * allocated before is freed as before. Fails where there is no such function. The first is for PyTorch 1.13, the second
 * for 2.1 and later, whose allocators have one more virtual function. */
TERRACE_API int terrace_placement_install(void* set_allocator);
TERRACE_API int terrace_placement_install_later(void* set_allocator);

/* From here on the n-th allocation of this thread lies at addresses[n] if it is of bytes[n]; address
 * 0 leaves it to the C library. The first allocation of another size ends placing. Both lists are borrowed until
 * terrace_placement_end, which returns how many allocations were placed. */
TERRACE_API void terrace_placement_begin(const uint64_t* bytes, const uint64_t* addresses, size_t count);
TERRACE_API size_t terrace_placement_end(void);

/* An allocation, or the end of one where `bytes` is 0. */
typedef struct terrace_allocation {
  uint64_t address, bytes;
} terrace_allocation;

/* From here on this thread's allocations are noted in `events`, which are borrowed until
 * terrace_placement_record_end. That returns how many there were, which may be more than there was room for. */
TERRACE_API void terrace_placement_record_begin(terrace_allocation* events, size_t room);
TERRACE_API size_t terrace_placement_record_end(void);

#ifdef __cplusplus
}
#endif

#endif
