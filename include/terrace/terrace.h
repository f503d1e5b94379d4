// SPDX-License-Identifier: Apache-2.0
/* The C interface of Terrace: what a program in any language needs in order to plan a step, to prove the plan
 * safe, to carry it out with kernels of its own, and to move bytes between memory and disks.
 *
 *   text      every `const char*` is UTF-8 that ends with a zero byte; it is borrowed for the call. A text that
 *             the library returns through a `char**` is freed with terrace_text_free.
 *   graph, machine, plan, record
 *             JSON texts of the formats in docs/formats; tensors and kernels are numbered as a record lists
 *             them, which is the order in which a plan was made and not always that of the graph given.
 *   status    functions that can fail return one. All but TERRACE_OK leave a sentence for the user behind,
 *             which terrace_last_error returns; what they were to give back is then untouched.
 *
 * Nothing here prints, aborts or throws. The library has no kernels and no OpenMP of its own, so it can live
 * beside any framework. Functions may be called from any thread; one executor is used by one thread at a time,
 * tiers and transfers by any number. Handles are freed once, in any order but this: transfers before their
 * tiers. NULL is allowed wherever a handle is freed. */
#ifndef TERRACE_TERRACE_H
#define TERRACE_TERRACE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TERRACE_API __attribute__((visibility("default")))
#else
#define TERRACE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Counts up with every change that a program built against an older header would misread. */
#define TERRACE_ABI_VERSION 1

typedef enum terrace_status {
  TERRACE_OK = 0,
  TERRACE_INVALID = 1,     /* the request is wrong: misspelt, out of range, a text that is not what it should be */
  TERRACE_NO_ROOM = 2,     /* it does not fit: the sentence names the tier or kernel and the bytes missing */
  TERRACE_UNSUPPORTED = 3, /* this computer or this build does not offer it */
  TERRACE_ENVIRONMENT = 4, /* the system failed: a full or broken disk, memory that is refused */
  TERRACE_STOPPED = 5,     /* a stop was requested */
  TERRACE_CALLBACK = 6,    /* a callback returned non-zero */
  TERRACE_BUG = 7          /* the library's own mistake */
} terrace_status;

/* ---- about the library --------------------------------------------------------------------------------- */

/* TERRACE_ABI_VERSION of the library that is loaded. */
TERRACE_API uint32_t terrace_abi_version(void);
/* Its version, such as `0.1.0`; never freed. */
TERRACE_API const char* terrace_version(void);

/* The sentence of the last call of this thread that failed; empty where none has. Valid until the next. */
TERRACE_API const char* terrace_last_error(void);
/* The system's errno behind it; 0 where there is none. */
TERRACE_API int terrace_last_error_cause(void);

TERRACE_API void terrace_text_free(char* text);

/* ---- long work ----------------------------------------------------------------------------------------- */

/* Ends long work from another thread. */
typedef struct terrace_stop terrace_stop;
/* NULL where memory is short. */
TERRACE_API terrace_stop* terrace_stop_new(void);
TERRACE_API void terrace_stop_request(terrace_stop* stop);
TERRACE_API void terrace_stop_free(terrace_stop* stop);

/* Whoever wants to know what long work is doing, or to end it. `progress` is called on the calling thread with a
 * few words; non-zero ends the work with TERRACE_STOPPED. Each may be NULL. */
typedef struct terrace_watch {
  int (*progress)(void* user, const char* what);
  void* user;
  terrace_stop* stop;
} terrace_watch;

/* ---- planning ------------------------------------------------------------------------------------------ */

/* Lists of objects with `name` and `summary`. */
TERRACE_API int terrace_planners(char** json);
TERRACE_API int terrace_machines(char** json);

/* The machine of that name (a preset, `this` for the computer, or a file) as JSON. `slow`: a JSON list of tier
 * specs for `this`, or NULL for a file in the user's cache folder. `this` is measured once, which takes up to a
 * minute, and kept. */
TERRACE_API int terrace_machine(const char* name, const char* slow, const terrace_watch* watch, char** json);

/* What a graph is like: an object with name, kernels, tensors, peak_bytes, bytes, flops, fingerprint. Fails
 * where the text is no valid graph, with the place. */
TERRACE_API int terrace_graph_check(const char* graph, char** json);

/* Plans a step and proves the plan safe. `options` is NULL or a JSON object, all keys optional:
 *   machine   a name as for terrace_machine, or a machine itself as an object; `this`
 *   slow      a list of tier specs, for `this`
 *   fast      how much of the fastest tier: `2GiB`, `20%` of the graph's peak; all of it
 *   budget    a list of bytes, one for each tier, none above its capacity, instead of `fast`
 *   planner   a name of terrace_planners, with options such as `prefetch+...`, or exec:PROGRAM; the first
 *   seconds   after which a planner that searches returns the best plan it has; it searches to its end
 * `record` is given the record, `summary` an object with the keys of `terrace plan --json`; each may be NULL.
 * Fails with TERRACE_NO_ROOM and the kernel that needs most where no plan can exist. */
TERRACE_API int terrace_plan(const char* graph, const char* options, const terrace_watch* watch, char** record,
                             char** summary);

/* The verifier's verdict over a record's plan: an object with `safe`, `violations` (each with moment,
 * instruction and reason) and `instructions`. A plan that is not safe is a verdict, not a failure. */
TERRACE_API int terrace_verify(const char* record, char** json);

/* Replays a record's plan on clocks, on its own machine (`machine` NULL) or another (a name or a JSON object):
 * an object with predicted_step_seconds, bound_seconds, exposed_seconds, moved_bytes, peak_bytes. Fails where the
 * plan is not safe there. */
TERRACE_API int terrace_simulate(const char* record, const char* machine, const terrace_watch* watch, char** json);

/* How little fast memory will do, as `terrace advise --json` says it. `options` as for terrace_plan but `fast`,
 * which is a list of budgets to draw the curve at, and
 *   slowdown  by how much a step may take longer, such as 0.05; 0.05
 *   prices    an object, the price of a gigabyte by the tier's name */
TERRACE_API int terrace_advise(const char* graph, const char* options, const terrace_watch* watch, char** json);

/* ---- tiers and transfers ------------------------------------------------------------------------------- */

/* Open tiers, numbered from 0 in the order they were given, and the mover between them and any memory. */
typedef struct terrace_tiers terrace_tiers;
/* `specs` such as `dram:64MiB` or `file:/data/spill:8GiB` (docs: include/terrace/tier_spec.hpp). Opening reserves
 * all of a tier, so that a full disk is met here. */
TERRACE_API int terrace_tiers_open(const char* const* specs, size_t count, terrace_tiers** tiers);
/* Waits for every transfer. */
TERRACE_API void terrace_tiers_close(terrace_tiers* tiers);
/* A list of objects: name, capacity, granularity, addressable, note. */
TERRACE_API int terrace_tiers_describe(const terrace_tiers* tiers, char** json);
/* Where a tier's bytes lie; NULL where there is no such tier or kernels cannot use it in place. */
TERRACE_API void* terrace_tiers_memory(const terrace_tiers* tiers, uint32_t tier);

/* As a tier: memory of the caller, whose offsets are addresses. It stays alive and alone while a transfer uses
 * it. */
#define TERRACE_HOST UINT32_MAX

/* Copies `bytes` from one place to another. Where the destination is a disk, what lies behind them up to the
 * tier's granularity may be overwritten with anything. The two do not overlap. */
typedef struct terrace_move {
  uint32_t from_tier, to_tier;
  uint64_t from, to;
  uint64_t bytes;
} terrace_move;

typedef enum terrace_priority { TERRACE_BACKGROUND = 0, TERRACE_NORMAL = 1, TERRACE_URGENT = 2 } terrace_priority;

typedef struct terrace_transfer terrace_transfer;
/* Starts moves in the background, which are waited for together, and returns at once. */
TERRACE_API int terrace_transfer_start(terrace_tiers* tiers, const terrace_move* moves, size_t count,
                                       terrace_priority priority, terrace_transfer** transfer);
/* Whether it has completed or failed: 1 or 0. Never blocks. */
TERRACE_API int terrace_transfer_done(const terrace_transfer* transfer);
/* Makes it urgent and returns when it is complete; fails, naming tier, path and cause, where it did. A failed
 * transfer leaves every source intact. */
TERRACE_API int terrace_transfer_wait(terrace_transfer* transfer);
/* Waits, and drops any error. */
TERRACE_API void terrace_transfer_free(terrace_transfer* transfer);

typedef struct terrace_traffic {
  uint64_t bytes;        /* that have arrived */
  uint64_t transfers;    /* that completed */
  double busy_seconds;   /* with a transfer in progress */
} terrace_traffic;
/* Of one direction between two tiers so far; TERRACE_HOST is a tier here, too. */
TERRACE_API int terrace_tiers_traffic(const terrace_tiers* tiers, uint32_t from, uint32_t to, terrace_traffic* traffic);

/* ---- carrying a plan out ------------------------------------------------------------------------------- */

typedef struct terrace_operand {
  void* address;
  uint64_t bytes;
} terrace_operand;

/* What a step calls back, on the thread that runs it; non-zero (of `alloc` and `address`: NULL) ends the step with
 * TERRACE_CALLBACK when everything that was started has ended, too. Kernels and tensors have the numbers of the
 * record.
 *
 * With `run` alone, the library opens all tiers of the record's machine and gives each kernel the addresses of its
 * inputs, its outputs and, where the variant needs one, its workspace, in this order.
 *
 * Where the fastest tier is on a device (`cuda:0:8GiB`), the addresses are the device's, and `run` issues the kernel
 * to terrace_executor_queue() and returns before it takes place. A whole step is issued ahead, and transfers take place
 * beside it. A kernel of which the program waits for results inside of `run` waits for the queue itself.
 *
 * With `alloc`, `release` and `address` too, the fastest tier is the caller's memory, as a framework with an
 * allocator of its own has it, and only the slower ones are opened. Then `run` is given no operands: the kernel's
 * inputs are where the caller has them and it makes its outputs itself. The verifier has proven which tensors
 * exist at every moment, and so how many bytes; where they lie is the caller's business.
 *   alloc     from here on the tensor exists in fast memory. `filled` 1: a transfer will fill it, so return where
 *             its bytes begin; 0: a kernel will make it, and any address but NULL will do.
 *   release   it is gone from fast memory: nothing uses it any more.
 *   address   where its bytes begin; asked before a transfer reads them, which may last until its wait. */
typedef struct terrace_callbacks {
  void* user;
  int (*run)(void* user, uint32_t kernel, uint32_t variant, const terrace_operand* operands, size_t count);
  void* (*alloc)(void* user, uint32_t tensor, uint64_t bytes, int filled);
  int (*release)(void* user, uint32_t tensor);
  void* (*address)(void* user, uint32_t tensor);
} terrace_callbacks;

/* A verified plan on open tiers. */
typedef struct terrace_executor terrace_executor;
/* Verifies the record's plan and opens its tiers, which need specs. Fails where either does. */
TERRACE_API int terrace_executor_open(const char* record, const terrace_callbacks* callbacks,
                                      terrace_executor** executor);
TERRACE_API void terrace_executor_close(terrace_executor* executor);
/* A tensor's bytes between steps: of those that outlive steps, inputs and results. `bytes` is the tensor's. Tensors
 * that lie in memory of the caller alone are refused. */
TERRACE_API int terrace_executor_write(terrace_executor* executor, uint32_t tensor, const void* from, uint64_t bytes);
TERRACE_API int terrace_executor_read(terrace_executor* executor, uint32_t tensor, void* to, uint64_t bytes);
/* The same for a part of a tensor that begins at byte `begin`, so that a large one need not be in the caller's memory
 * at once. Refused where fast memory is the caller's. */
TERRACE_API int terrace_executor_write_part(terrace_executor* executor, uint32_t tensor, uint64_t begin,
                                            const void* from, uint64_t bytes);
TERRACE_API int terrace_executor_read_part(terrace_executor* executor, uint32_t tensor, uint64_t begin, void* to,
                                           uint64_t bytes);
/* Where kernels would find the tensor between steps: in memory, or on the device that runs kernels. `address` is given
 * NULL where it then lies elsewhere. Who writes there sees to it that the bytes have arrived before the next step. */
TERRACE_API int terrace_executor_address(const terrace_executor* executor, uint32_t tensor, void** address);
/* Within `run`: the queue that the kernel is to be issued to, as the device's own library calls it (a CUstream). NULL
 * where the kernel is computed before `run` returns. */
TERRACE_API void* terrace_executor_queue(const terrace_executor* executor);
/* Has a device keep these kernels, and issue many of them at the cost of one call in all later steps. `run` is called
 * for each once, in which nothing takes place, and not again: so they do the same on the same operands in every step,
 * and what else they use stays where it is. Fails where kernels are not issued to a device's queue or one of them
 * cannot be kept: then, and with a count of 0, steps call `run` for all of them again. */
TERRACE_API int terrace_executor_bundle(terrace_executor* executor, const uint32_t* kernels, size_t count);
/* One step. After a failure the tensors that outlive steps are undefined: write them again, or close. */
TERRACE_API int terrace_executor_step(terrace_executor* executor);
/* What the last step did: an object with step_seconds, exposed_seconds, moved_bytes, peak_bytes, and kernel_seconds
 * by kernel. A device's queues are not timed kernel by kernel, so exposed_seconds and kernel_seconds are zero there. */
TERRACE_API int terrace_executor_result(const terrace_executor* executor, char** json);

#ifdef __cplusplus
}
#endif

#endif
