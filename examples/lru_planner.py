#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An outside planner, asked by --planner exec:examples/lru_planner.py: the longest unused tensor leaves when room is needed."""
import heapq, json, sys

request = json.load(sys.stdin)  # docs/formats/record.md
tensors, budget, derived = request["graph"]["tensors"], request["budget"], request["derived"]
uses, sizes, spill, slower = derived["uses"], derived["sizes"], derived["spill_tiers"], range(1, len(budget))
persistent = {t for t, tensor in enumerate(tensors) if tensor["persistent"]}
given = {t for t, tensor in enumerate(tensors) if tensor["kind"] == "input"} - persistent
fixed = {t for t, *_ in uses[-1] if t in persistent | given}  # the last uses are those of the step's end: results
def plan(pinned):  # these start in fast memory; returns those that had to leave it, None where there is no room
    regions, live, steps = [set() for _ in budget], [0] * len(budget), []
    stored, left, heap, used, next_use = set(), {}, [], {}, dict(enumerate(derived["first"]))
    def alloc(t, tier):
        regions[tier].add(t), steps.append(["alloc", t, tier])
        live[tier] += sizes[t][tier]
    def free(t, tier):
        regions[tier].remove(t), steps.append(["free", t, tier])
        live[tier] -= sizes[t][tier]
    def spill_tier(t):
        return min([i for i in slower if t in regions[i]] or [i for i in spill if live[i] + sizes[t][i] <= budget[i]])
    def copy(t, source, to):
        if t not in regions[to]: alloc(t, to)
        steps.extend([["copy", [t], source, to, len(steps)], ["wait", len(steps)]])
    def touch(t, kernel):
        used[t] = kernel
        heapq.heappush(heap, (kernel, t))
    def evict(t, needed):
        if needed and t not in stored: stored.add(t), copy(t, 0, spill_tier(t))
        free(t, 0), left.update({t: len(tensors) + len(steps)})  # fetched again in the order in which they left
    for t in range(len(tensors)):
        if t in pinned | given: alloc(t, 0), touch(t, 0)
        elif t in persistent: alloc(t, spill_tier(t)), stored.add(t), left.update({t: t})
    start, steps[:], evicted = [step[1:] for step in steps], [], set()
    for kernel, operands in enumerate(uses):
        now, at_end = {t for t, *_ in operands}, kernel == len(uses) - 1
        while live[0] + sum(sizes[t][0] for t in now - regions[0]) > budget[0]:
            if not heap: return None
            last, t = heapq.heappop(heap)
            if t in regions[0] and used[t] == last and t not in now | fixed:
                evict(t, t in persistent if next_use[t][0] is None else next_use[t][1]), evicted.add(t)
        fetched = sorted((t for t, reads, *_ in operands if reads and t not in regions[0]), key=left.get)
        for t in sorted(regions[0] & persistent - pinned) if at_end else []: evict(t, True)
        for t in fetched: copy(t, spill_tier(t), 0)
        if not at_end:
            for t in [t for t, *_ in operands if t not in regions[0]]: alloc(t, 0)
            steps.append(["run", kernel, derived["variants"][kernel], [0] * derived["operands"][kernel]])
        for t, _, writes, *next_use[t] in operands if not at_end else []:
            over = next_use[t][0] is None and t not in persistent
            free(t, 0) if over else touch(t, kernel)
            if writes: stored.discard(t)
            for tier in [i for i in slower if t in regions[i] and (over or writes and t not in persistent)]: free(t, tier)
    for t in sorted(given - regions[0]): alloc(t, 0)  # the step ends as it began
    for tier in slower: [free(t, tier) for t in sorted(regions[tier] - persistent)]
    return evicted & pinned, {"start": start, "instructions": steps}
without, pinned, made = plan(fixed), fixed | persistent, None
for _ in range(16):
    made = plan(pinned)
    if made is None or not made[0]: break
    pinned -= made[0]
made = made if made and not made[0] else without
json.dump(made[1], sys.stdout) if made else sys.exit("one kernel needs more than all fast memory")
