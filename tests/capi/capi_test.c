// SPDX-License-Identifier: Apache-2.0
/* The C interface as a C program uses it: a chain of additions is planned for less memory than it wants, proven safe
 * and carried out with C functions as kernels, in memory of the library and in memory of this program. Exits with the
 * number of expectations that failed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "terrace/terrace.h"

enum { kLayers = 6, kTensors = kLayers + 1, kFloats = 64 * 1024, kBytes = kFloats * 4 };

static int failures = 0;

static void expect_at(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "line %d: %s; the last error: %s\n", line, what, terrace_last_error());
}
#define EXPECT(condition) expect_at((condition) != 0, #condition, __LINE__)

/* Forward, t[i+1] = t[i] + 1; backward, t[i] = t[i] + t[i+1]: every tensor is wanted a second time, the first one
 * last. t[0] is the input and what it ends as is read back through `sum`. */
static void write_graph(char* text, size_t size) {
  int n = snprintf(text, size, "{\"format\":\"terrace-graph\",\"version\":1,\"name\":\"chain\",\"tensors\":[");
  for (int i = 0; i < kTensors; ++i)
    n += snprintf(text + n, size - n, "{\"name\":\"t%d\",\"shape\":[%d],\"kind\":\"%s\"},", i, kFloats,
                  i == 0 ? "input" : "activation");
  n += snprintf(text + n, size - n, "{\"name\":\"sum\",\"shape\":[1]}],\"kernels\":[");
  for (int i = 0; i < kLayers; ++i)
    n += snprintf(text + n, size - n,
                  "{\"name\":\"up%d\",\"operation\":\"up\",\"inputs\":[\"t%d\"],\"outputs\":[\"t%d\"],"
                  "\"variants\":[{\"name\":\"\",\"time\":0.01}]},",
                  i, i, i + 1);
  for (int i = kLayers - 1; i >= 0; --i)
    n += snprintf(text + n, size - n,
                  "{\"name\":\"down%d\",\"operation\":\"down\",\"inputs\":[\"t%d\",\"t%d\"],\"outputs\":[\"t%d\"],"
                  "\"variants\":[{\"name\":\"\",\"time\":0.01}]},",
                  i, i, i + 1, i);
  snprintf(text + n, size - n,
           "{\"name\":\"sum\",\"operation\":\"sum\",\"inputs\":[\"t0\"],\"outputs\":[\"sum\"],"
           "\"variants\":[{\"name\":\"\",\"time\":0.01}]}],\"results\":[\"sum\"]}");
}

static void write_options(char* text, size_t size, const char* disk, const char* fast, const char* planner) {
  snprintf(text, size,
           "{\"planner\":\"%s\",\"fast\":\"%s\",\"machine\":{\"format\":\"terrace-machine\",\"version\":1,"
           "\"name\":\"test\",\"compute\":{\"name\":\"test\",\"threads\":1,\"flops_per_second\":1e9},\"tiers\":["
           "{\"name\":\"dram\",\"capacity\":\"64MiB\",\"read\":1e10,\"write\":1e10,\"spec\":\"dram:64MiB\"},"
           "{\"name\":\"disk\",\"capacity\":\"64MiB\",\"addressable\":false,\"read\":1e9,\"write\":1e9,"
           "\"granularity\":4096,\"spec\":\"file:%s:64MiB,buffered\"}],"
           "\"links\":[{\"from\":\"dram\",\"to\":\"disk\",\"rates\":[{\"size\":65536,\"rate\":1e9}]},"
           "{\"from\":\"disk\",\"to\":\"dram\",\"rates\":[{\"size\":65536,\"rate\":1e9}]}]}}",
           planner, fast, disk);
}

/* ---- kernels, by their place in the graph: the planner prefetch runs each once, in order ---- */

static void add(float* to, const float* a, const float* b) {
  for (int i = 0; i < kFloats; ++i) to[i] = a[i] + (b == NULL ? 1 : b[i]);
}

static int compute(uint32_t kernel, float* const* operands) {
  if (kernel < kLayers) {
    add(operands[1], operands[0], NULL);
  } else if (kernel < 2 * kLayers) {
    add(operands[2], operands[0], operands[1]);
  } else {
    *operands[1] = 0;
    for (int i = 0; i < kFloats; ++i) *operands[1] += operands[0][i];
  }
  return 0;
}

static int run_opened(void* user, uint32_t kernel, uint32_t variant, const terrace_operand* operands, size_t count) {
  float* addresses[3] = {NULL, NULL, NULL};
  for (size_t i = 0; i < count && i < 3; ++i) addresses[i] = operands[i].address;
  ++*(int*)user;
  return variant != 0 || compute(kernel, addresses);
}

/* ---- fast memory of this program ---- */

struct Caller {
  float* places[kTensors + 1];
  uint64_t live, most;
  uint32_t fail_at;
};

static uint64_t bytes_of(uint32_t tensor) { return tensor == kTensors ? 4 : kBytes; }

static void* own_alloc(void* user, uint32_t tensor, uint64_t bytes, int filled) {
  struct Caller* caller = user;
  if (caller->places[tensor] != NULL || bytes != bytes_of(tensor) || filled < 0) return NULL;
  caller->live += bytes;
  if (caller->live > caller->most) caller->most = caller->live;
  return caller->places[tensor] = malloc(bytes);
}

static int own_release(void* user, uint32_t tensor) {
  struct Caller* caller = user;
  if (caller->places[tensor] == NULL) return 1;
  memset(caller->places[tensor], 0xff, bytes_of(tensor));
  free(caller->places[tensor]);
  caller->places[tensor] = NULL;
  caller->live -= bytes_of(tensor);
  return 0;
}

static void* own_address(void* user, uint32_t tensor) { return ((struct Caller*)user)->places[tensor]; }

static int run_own(void* user, uint32_t kernel, uint32_t variant, const terrace_operand* operands, size_t count) {
  struct Caller* caller = user;
  float* at[3];
  if (variant != 0 || operands != NULL || count != 0 || kernel == caller->fail_at) return 1;
  if (kernel < kLayers) {
    at[0] = caller->places[kernel], at[1] = caller->places[kernel + 1];
  } else if (kernel < 2 * kLayers) {
    const uint32_t i = 2 * kLayers - 1 - kernel;
    at[0] = at[2] = caller->places[i], at[1] = caller->places[i + 1];
  } else {
    at[0] = caller->places[0], at[1] = caller->places[kTensors];
  }
  return at[0] == NULL || at[1] == NULL || compute(kernel, at);
}

static float expected(const float* input) {
  float* tensors[kTensors];
  float sum = 0, *at[3];
  for (int i = 0; i < kTensors; ++i) tensors[i] = malloc(kBytes);
  memcpy(tensors[0], input, kBytes);
  for (uint32_t k = 0; k < kLayers; ++k) at[0] = tensors[k], at[1] = tensors[k + 1], compute(k, at);
  for (uint32_t k = kLayers; k < 2 * kLayers; ++k) {
    const uint32_t i = 2 * kLayers - 1 - k;
    at[0] = at[2] = tensors[i], at[1] = tensors[i + 1], compute(k, at);
  }
  at[0] = tensors[0], at[1] = &sum, compute(2 * kLayers, at);
  for (int i = 0; i < kTensors; ++i) free(tensors[i]);
  return sum;
}

static void execute_in_opened_tiers(const char* record, const float* input) {
  int runs = 0;
  float sum = 0;
  const terrace_callbacks callbacks = {&runs, run_opened, NULL, NULL, NULL};
  terrace_executor* executor = NULL;
  EXPECT(terrace_executor_open(record, &callbacks, &executor) == TERRACE_OK);
  for (int step = 1; step <= 2; ++step) {
    EXPECT(terrace_executor_write(executor, 0, input, kBytes) == TERRACE_OK);
    EXPECT(terrace_executor_step(executor) == TERRACE_OK);
    EXPECT(runs == step * (2 * kLayers + 1));
    EXPECT(terrace_executor_read(executor, kTensors, &sum, 4) == TERRACE_OK);
    EXPECT(sum == expected(input));
  }
  EXPECT(terrace_executor_write(executor, 0, input, 4) == TERRACE_INVALID);
  EXPECT(terrace_executor_write(executor, 99, input, 4) == TERRACE_INVALID);
  terrace_executor_close(executor);
}

static void execute_in_own_memory(const char* record, const float* input, uint64_t budget) {
  struct Caller caller;
  memset(&caller, 0, sizeof caller);
  caller.fail_at = UINT32_MAX;
  const terrace_callbacks callbacks = {&caller, run_own, own_alloc, own_release, own_address};
  terrace_executor* executor = NULL;
  EXPECT(terrace_executor_open(record, &callbacks, &executor) == TERRACE_OK);
  for (int step = 0; step < 3; ++step) {
    if (caller.places[0] == NULL) own_alloc(&caller, 0, kBytes, 0);
    memcpy(caller.places[0], input, kBytes);
    caller.fail_at = step == 1 ? 3 : UINT32_MAX;
    EXPECT(terrace_executor_step(executor) == (step == 1 ? TERRACE_CALLBACK : TERRACE_OK));
    EXPECT(step == 1 || *caller.places[kTensors] == expected(input));
    for (uint32_t i = 0; i <= kTensors; ++i)
      if (caller.places[i] != NULL) own_release(&caller, i);
  }
  EXPECT(caller.most <= budget);
  EXPECT(caller.most > budget / 2);
  char* result = NULL;
  EXPECT(terrace_executor_result(executor, &result) == TERRACE_OK);
  EXPECT(result != NULL && strstr(result, "\"dram>disk\"") != NULL);
  terrace_text_free(result);
  terrace_executor_close(executor);
}

static void plan_and_execute(const char* disk) {
  static char graph[16384], options[4096];
  static float input[kFloats];
  for (int i = 0; i < kFloats; ++i) input[i] = (float)(i % 7);
  write_graph(graph, sizeof graph);
  write_options(options, sizeof options, disk, "50%", "prefetch");
  char *record = NULL, *summary = NULL, *verdict = NULL, *simulated = NULL;
  EXPECT(terrace_plan(graph, options, NULL, &record, &summary) == TERRACE_OK);
  if (record == NULL) return;
  EXPECT(strstr(summary, "\"verified\":true") != NULL);
  EXPECT(terrace_verify(record, &verdict) == TERRACE_OK && strstr(verdict, "\"safe\":true") != NULL);
  EXPECT(terrace_simulate(record, "numa-sentinel", NULL, &simulated) == TERRACE_OK);
  execute_in_opened_tiers(record, input);
  execute_in_own_memory(record, input, (kTensors * (uint64_t)kBytes + 4) / 2);
  terrace_text_free(record);
  terrace_text_free(summary);
  terrace_text_free(verdict);
  terrace_text_free(simulated);
  record = NULL;
  write_options(options, sizeof options, disk, "1%", "prefetch");
  EXPECT(terrace_plan(graph, options, NULL, &record, NULL) == TERRACE_NO_ROOM);
  EXPECT(record == NULL && strstr(terrace_last_error(), "missing") != NULL);
  EXPECT(terrace_plan("{", NULL, NULL, &record, NULL) == TERRACE_INVALID);
  EXPECT(terrace_plan(graph, "{\"fsat\":\"1%\"}", NULL, &record, NULL) == TERRACE_INVALID);
  EXPECT(strstr(terrace_last_error(), "fsat") != NULL);
  EXPECT(terrace_verify("{}", &verdict) == TERRACE_INVALID);
  EXPECT(terrace_plan(NULL, NULL, NULL, NULL, NULL) == TERRACE_INVALID);
}

static int refuse(void* user, const char* what) { return *(int*)user += what != NULL; }

static void work_is_stopped(void) {
  static char graph[16384];
  write_graph(graph, sizeof graph);
  int told = 0;
  terrace_watch watch = {refuse, &told, NULL};
  EXPECT(terrace_plan(graph, "{\"machine\":\"numa-sentinel\"}", &watch, NULL, NULL) == TERRACE_STOPPED && told == 1);
  watch.progress = NULL;
  watch.stop = terrace_stop_new();
  terrace_stop_request(watch.stop);
  EXPECT(terrace_plan(graph, "{\"machine\":\"numa-sentinel\"}", &watch, NULL, NULL) == TERRACE_STOPPED);
  terrace_stop_free(watch.stop);
}

static void transfers_carry_own_memory(const char* disk) {
  static char from[1 << 20], to[1 << 20];
  char spec[512], *json = NULL;
  for (size_t i = 0; i < sizeof from; ++i) from[i] = (char)(i * 31 + (i >> 9));
  snprintf(spec, sizeof spec, "file:%s:2MiB,buffered", disk);
  const char* specs[] = {"dram:1MiB", spec};
  terrace_tiers* tiers = NULL;
  EXPECT(terrace_tiers_open(specs, 2, &tiers) == TERRACE_OK);
  if (tiers == NULL) return;
  EXPECT(terrace_tiers_describe(tiers, &json) == TERRACE_OK && strstr(json, "\"capacity\":2097152") != NULL);
  terrace_text_free(json);
  EXPECT(terrace_tiers_memory(tiers, 0) != NULL && terrace_tiers_memory(tiers, 1) == NULL);
  /* An address and a length that no disk likes. */
  const terrace_move out = {TERRACE_HOST, 1, (uint64_t)(uintptr_t)(from + 3), 4096, sizeof from - 10};
  const terrace_move back = {1, TERRACE_HOST, 4096, (uint64_t)(uintptr_t)to, sizeof from - 10};
  terrace_transfer* transfer = NULL;
  EXPECT(terrace_transfer_start(tiers, &out, 1, TERRACE_BACKGROUND, &transfer) == TERRACE_OK);
  EXPECT(terrace_transfer_wait(transfer) == TERRACE_OK && terrace_transfer_done(transfer) == 1);
  terrace_transfer_free(transfer);
  EXPECT(terrace_transfer_start(tiers, &back, 1, TERRACE_URGENT, &transfer) == TERRACE_OK);
  EXPECT(terrace_transfer_wait(transfer) == TERRACE_OK);
  terrace_transfer_free(transfer);
  EXPECT(memcmp(from + 3, to, sizeof from - 10) == 0);
  terrace_traffic traffic;
  EXPECT(terrace_tiers_traffic(tiers, TERRACE_HOST, 1, &traffic) == TERRACE_OK);
  EXPECT(traffic.bytes == sizeof from - 10 && traffic.transfers == 1);
  const terrace_move beyond = {TERRACE_HOST, 1, (uint64_t)(uintptr_t)from, 2 << 20, 1};
  EXPECT(terrace_transfer_start(tiers, &beyond, 1, TERRACE_NORMAL, &transfer) == TERRACE_INVALID);
  const terrace_move nowhere = {7, 1, 0, 0, 1};
  EXPECT(terrace_transfer_start(tiers, &nowhere, 1, TERRACE_NORMAL, &transfer) == TERRACE_INVALID);
  terrace_tiers_close(tiers);
  specs[0] = "dram:lots";
  EXPECT(terrace_tiers_open(specs, 2, &tiers) == TERRACE_INVALID);
}

int main(int count, char** arguments) {
  if (count != 2) return 100;
  EXPECT(terrace_abi_version() == TERRACE_ABI_VERSION);
  EXPECT(strcmp(terrace_last_error(), "") == 0);
  char* json = NULL;
  EXPECT(terrace_planners(&json) == TERRACE_OK && strstr(json, "\"best\"") != NULL);
  terrace_text_free(json);
  EXPECT(terrace_machines(&json) == TERRACE_OK && strstr(json, "numa-sentinel") != NULL);
  terrace_text_free(json);
  plan_and_execute(arguments[1]);
  work_is_stopped();
  transfers_carry_own_memory(arguments[1]);
  if (failures == 0) puts("all expectations of the C interface hold");
  return failures;
}
