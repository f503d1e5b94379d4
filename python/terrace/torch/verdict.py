# SPDX-License-Identifier: Apache-2.0
"""What users write and read: amounts of memory, and one line that says what will happen."""
import re
import sys

from ..errors import InvalidRequest

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_memory(given):
    """(bytes, None) of `8GiB` or a number of bytes, (None, share) of `20%`."""
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given, None
    text = str(given).strip()
    share = re.fullmatch(r"([0-9.]+)\s*%", text)
    if share and 0 < float(share[1]) <= 100:
        return None, float(share[1]) / 100
    amount = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([A-Za-z]*)", text)
    if amount and amount[2].upper() in _UNITS and amount[2] and float(amount[1]) > 0:
        return int(float(amount[1]) * _UNITS[amount[2].upper()]), None
    raise InvalidRequest(
        f"memory={given!r} is no amount of memory: give one such as '8GiB', or a share of what the model takes such as '20%'")


def readable(count):
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


class NotCopied:
    """What is fitted to one model in this process."""

    def __reduce_ex__(self, protocol):
        raise TypeError("a fitted model cannot be copied or pickled: take its state_dict(), or terrace.torch.unfit(model) first")


def say(line):
    print(line, file=sys.stderr, flush=True)


def verdict_line(facts):
    """One line: memory on each tier, predicted slowdown, bound, which way was taken and why."""
    parts = [f"terrace: {readable(facts['peak_bytes'])} -> {readable(facts['budget_bytes'])} of memory"]
    if facts["slow_bytes"]:
        where = f"on disk in {facts['folder']}" if facts["folder"] else "in the computer's memory"
        parts[0] += f", {readable(facts['slow_bytes'])} {where}"
    if facts["planner"]:
        parts.append(f"plan by {facts['planner']} verified, {facts['slowdown']:.2f}x of full speed's time predicted, "
                     f"bound {facts['bound']:.2f}x")
    elif facts["no_plan"]:
        parts.append(f"carried out as it comes, on demand, for there is no plan: {facts['no_plan']}")
    else:
        parts.append("everything fits, nothing is moved")
    parts.append(f"by {facts['way']}" + (f" ({facts['why']})" if facts["why"] else ""))
    if facts.get("unordered"):
        parts.append("these kernels are not deterministic in PyTorch itself: " + ", ".join(_counted(facts["unordered"])))
    return "; ".join(parts)


def _counted(unordered):
    return (f"{operation} ({count} of them)" if count > 1 else operation for operation, count in unordered.items())
