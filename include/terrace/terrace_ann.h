// SPDX-License-Identifier: Apache-2.0
/* Vector search through the C interface of Terrace (terrace.h, whose words and contracts hold here): an index of
 * vectors that need not fit in memory. terrace/ann.hpp says more of every option.
 *
 *   vectors   `count` rows of `dimension` floats, one after the other, borrowed for the call
 *   index     a handle that any number of threads may search with at once; ids are the numbers of rows
 *
 * Options are JSON objects; NULL means an empty one. A key that is unknown or a value of another kind is refused. */
#ifndef TERRACE_TERRACE_ANN_H
#define TERRACE_TERRACE_ANN_H

#include "terrace/terrace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct terrace_ann terrace_ann;

/* Builds an index in memory. Options: metric ("l2", "ip", "cosine"), links, ef_construction, fast_bytes,
 * cache_bytes, code_bytes, searchers, threads, seed. No vectors make an empty index, which add fills. */
TERRACE_API int terrace_ann_build(const float* vectors, uint64_t count, uint64_t dimension, const char* options,
                                  const terrace_watch* watch, terrace_ann** index);
/* Builds an index of a file of vectors into a folder within so many bytes of memory; called again after it was
 * killed, it goes on where it was. Options: those above, and builders. */
TERRACE_API int terrace_ann_build_file(const char* data, const char* folder, const char* options,
                                       uint64_t memory_bytes, const terrace_watch* watch);
/* Opens a folder. Options: placement ("memory", "disk"), cache_bytes, searchers, threads. */
TERRACE_API int terrace_ann_open(const char* folder, const char* options, terrace_ann** index);
TERRACE_API int terrace_ann_save(const terrace_ann* index, const char* folder);
TERRACE_API void terrace_ann_close(terrace_ann* index);

/* Adds vectors, whose ids follow those that are there. */
TERRACE_API int terrace_ann_add(terrace_ann* index, const float* vectors, uint64_t count, uint64_t dimension,
                                uint32_t ef_construction);
/* Leaves a vector out of every answer from now on. */
TERRACE_API int terrace_ann_remove(terrace_ann* index, uint32_t id);

/* Finds the k nearest of each query: `ids` and `distances` have room for queries x k; where there are fewer, the
 * rest has the id 0xFFFFFFFF and an infinite distance. Options: ef1, ef0, beam, shares, ahead. */
TERRACE_API int terrace_ann_search(const terrace_ann* index, const float* queries, uint64_t count,
                                   uint64_t dimension, uint64_t k, const char* options, uint32_t* ids,
                                   float* distances);
/* Chooses ef1 and ef0 for a recall and a latency in seconds, from queries whose exact neighbours are found by
 * comparing with all `vectors`. The text is an object with ef1, ef0, recall, predicted_seconds. */
TERRACE_API int terrace_ann_tune(const terrace_ann* index, const float* vectors, uint64_t vector_count,
                                 const float* queries, uint64_t query_count, uint64_t dimension, uint64_t k,
                                 double recall, double latency, char** chosen);
/* An object with vectors, removed, dimension, metric, fast_bytes, slow_bytes, and what searches did so far. */
TERRACE_API int terrace_ann_describe(const terrace_ann* index, char** text);

#ifdef __cplusplus
}
#endif

#endif
