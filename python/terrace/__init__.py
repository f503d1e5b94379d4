# SPDX-License-Identifier: Apache-2.0
"""Terrace: programs whose data does not fit in fast memory.

    >>> import terrace
    >>> plan = terrace.plan("g.json", machine="optane-autotm", fast="20%")
    >>> plan.verified, plan.slowdown

`terrace.torch.fit` trains PyTorch models in less memory; `terrace.memory` has tiers, transfers and executors.
"""
from ._library import HOST, library as _library_handle
from .errors import Error, InvalidRequest, LibraryBug, NoRoom, Stopped, SystemFailed, Unsupported
from .planning import Plan, advise, check_graph, load, machine, machines, plan, planners

__version__ = _library_handle.terrace_version().decode()
