# SPDX-License-Identifier: Apache-2.0
"""Spill: where saved tensors lie while they are not in memory, and the transfers there and back.

Space on the disk is a list of slabs, each a file without a name that vanishes with the process. While a step is carried
out as it comes, slabs are opened one by one as they are needed and space in them is given out in order; a plan has one
slab with offsets of its own.
"""
import os

from .. import memory
from ..errors import InvalidRequest
from .folders import cache_folder

SLAB = 1 << 30
GRANULE = 4096


def rounded(count):
    return (count + GRANULE - 1) // GRANULE * GRANULE


class Slab:
    """One open file with a bump allocator, empty again when all that was put there is gone."""

    def __init__(self, spill, size):
        self.size = size
        self.used = 0
        self.live = 0
        self.tiers = memory.Tiers([spill.spec(size)])

    def take(self, count):
        if self.used + count > self.size:
            return None
        offset, self.used = self.used, self.used + count
        self.live += 1
        return offset

    def give_back(self):
        self.live -= 1
        if self.live == 0:
            self.used = 0


class Spill:
    def __init__(self, folder=None):
        self.folder = folder or cache_folder()
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise InvalidRequest(f"disk={self.folder!r} cannot be used ({error.strerror}): name a folder that can be written to")
        self.slabs = []
        self.planned = None
        self._options = self._probe()

    def spec(self, size):
        return f"file:{os.path.join(self.folder, 'spill')}:{size}B{self._options}"

    def _probe(self):
        """Disks that refuse to go past the page cache, as some file systems do, are used through it."""
        self._options = ""
        try:
            memory.Tiers([self.spec(1 << 20)]).close()
        except Exception as refused:
            self._options = ",buffered"
            try:
                memory.Tiers([self.spec(1 << 20)]).close()
            except Exception:
                raise refused from None
        return self._options

    def place(self, count):
        """(slab, offset) for so many bytes. Raises SystemFailed where the disk is full."""
        count = rounded(count)
        for slab in self.slabs:
            offset = slab.take(count)
            if offset is not None:
                return slab, offset
        self.slabs.append(Slab(self, max(SLAB, count)))
        return self.slabs[-1], self.slabs[-1].take(count)

    def plan_for(self, count):
        """One slab as large as a plan wants it; the others go where nothing lies in them."""
        self.slabs = [slab for slab in self.slabs if slab.live]
        if self.planned is None or self.planned.size < count:
            self.planned = None
            self.planned = Slab(self, max(rounded(count), GRANULE))
        return self.planned

    def all_slabs(self):
        return self.slabs + ([self.planned] if self.planned else [])

    def traffic(self):
        """(bytes, seconds busy) out and in, since the slabs were opened."""
        sums = []
        for ends in ((memory.HOST, 0), (0, memory.HOST)):
            counted = [slab.tiers.traffic(*ends) for slab in self.all_slabs()]
            sums.append((sum(each["bytes"] for each in counted), sum(each["busy_seconds"] for each in counted)))
        return sums
