# SPDX-License-Identifier: Apache-2.0
"""Where this user's files lie."""
import os


def cache_folder():
    """For what was learnt, and for what does not fit in memory where no other folder is named."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "terrace")
