# SPDX-License-Identifier: Apache-2.0
"""Vector search when the vectors do not fit in memory, with numpy arrays and in hnswlib's manner.

    >>> index = terrace.ann.Index(space="l2", dim=128)
    >>> index.init_index(M=16, ef_construction=100)
    >>> index.add_items(vectors)
    >>> index.set_ef(50)
    >>> labels, distances = index.knn_query(queries, k=10)
    >>> index.save_index("folder")
    >>> index.load_index("folder", placement="disk", cache_bytes=64 << 20)

Distances are those of hnswlib: squared for l2, one minus the product for ip and cosine.
"""
import json
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_uint32, c_uint64, c_void_p

import numpy

from ._library import Watch, Watching, call_for_json, check, encoded, library

_FLOATS, _IDS = POINTER(c_float), POINTER(c_uint32)
for _name, _arguments in {
    "terrace_ann_build": [_FLOATS, c_uint64, c_uint64, c_char_p, POINTER(Watch), POINTER(c_void_p)],
    "terrace_ann_build_file": [c_char_p, c_char_p, c_char_p, c_uint64, POINTER(Watch)],
    "terrace_ann_open": [c_char_p, c_char_p, POINTER(c_void_p)],
    "terrace_ann_save": [c_void_p, c_char_p],
    "terrace_ann_close": [c_void_p],
    "terrace_ann_add": [c_void_p, _FLOATS, c_uint64, c_uint64, c_uint32],
    "terrace_ann_remove": [c_void_p, c_uint32],
    "terrace_ann_search": [c_void_p, _FLOATS, c_uint64, c_uint64, c_uint64, c_char_p, _IDS, _FLOATS],
    "terrace_ann_tune": [c_void_p, _FLOATS, c_uint64, _FLOATS, c_uint64, c_uint64, c_uint64, c_double, c_double,
                         POINTER(c_void_p)],
    "terrace_ann_describe": [c_void_p, POINTER(c_void_p)],
}.items():
    _function = getattr(library, _name)
    _function.restype = None if _name == "terrace_ann_close" else c_int
    _function.argtypes = _arguments

_LABELS = "labels.npy"
_NO_LABEL = numpy.uint64(0xFFFFFFFFFFFFFFFF)


def _options(**given):
    return encoded(json.dumps({key: value for key, value in given.items() if value is not None}))


def build_file(data, folder, memory_bytes, progress=None, **options):
    """Builds an index of a file of vectors (fvecs, bvecs, fbin, u8bin, npy) within so much memory. Killed, it goes on
    where it was when it is called again. Options are those of terrace_ann.h."""
    watching = Watching(progress)
    watching.check(library.terrace_ann_build_file(
        encoded(os.fspath(data)), encoded(os.fspath(folder)), _options(**options), memory_bytes, watching.pointer()))


class Index:
    """An index over vectors of one dimension. Any number of threads may search it at once."""

    def __init__(self, space="l2", dim=None):
        self.space, self.dim = space, dim
        self._handle = None
        self._build = {}
        self._search = {"ef0": 50}
        self._labels = numpy.zeros(0, numpy.uint64)

    def __del__(self):
        self.close()

    def close(self):
        handle, self._handle = self._handle, None
        if handle:
            library.terrace_ann_close(handle)

    def init_index(self, max_elements=None, M=16, ef_construction=100, random_seed=1, fast_bytes=None,
                   code_bytes=None, cache_bytes=None, num_threads=1):
        """Says how the index will be built. `max_elements` is there for hnswlib's users: an index has no limit.
        `fast_bytes`: as much of it as that stays in fast memory when it is opened on a disk; `code_bytes`: for each
        vector, which spares a disk reads."""
        del max_elements
        self.close()
        self._labels = numpy.zeros(0, numpy.uint64)
        self._build = {"links": M, "ef_construction": ef_construction, "seed": random_seed, "fast_bytes": fast_bytes,
                       "code_bytes": code_bytes, "cache_bytes": cache_bytes, "searchers": num_threads}

    def add_items(self, data, ids=None, progress=None):
        """Adds rows. `ids` are labels of any 64 bits, by default the numbers that follow."""
        rows = self._rows(data)
        labels = (numpy.arange(len(self._labels), len(self._labels) + len(rows), dtype=numpy.uint64)
                  if ids is None else numpy.atleast_1d(numpy.asarray(ids, dtype=numpy.uint64)))
        if len(labels) != len(rows):
            raise ValueError(f"there are {len(rows)} rows and {len(labels)} ids")
        if len(numpy.unique(labels)) != len(labels) or numpy.isin(labels, self._labels).any():
            raise ValueError("an id is there already: mark_deleted it and choose another")
        if self._handle is None:
            watching = Watching(progress)
            handle = c_void_p()
            watching.check(library.terrace_ann_build(
                _pointer(rows), len(rows), self.dim, _options(metric=self.space, **self._build), watching.pointer(),
                byref(handle)))
            self._handle = handle
        else:
            check(library.terrace_ann_add(self._handle, _pointer(rows), len(rows), self.dim,
                                          self._build.get("ef_construction", 100)))
        self._labels = numpy.concatenate([self._labels, labels])

    def mark_deleted(self, label):
        """Leaves a vector out of every answer from now on."""
        found = numpy.flatnonzero(self._labels == numpy.uint64(label))
        if len(found) == 0:
            raise ValueError(f"there is no vector {label}")
        check(library.terrace_ann_remove(self._open(), int(found[0])))

    def set_ef(self, ef):
        """Candidates of the lowest layer: more finds more and takes longer."""
        self._search["ef0"] = int(ef)

    def set_search(self, **options):
        """Any of ef1, ef0, beam, shares and ahead, as terrace_ann.h has them."""
        self._search.update({key: int(value) for key, value in options.items()})

    def knn_query(self, data, k=1):
        """Labels and distances of the k nearest of each row, nearest first."""
        rows = self._rows(data)
        ids = numpy.empty((len(rows), k), numpy.uint32)
        distances = numpy.empty((len(rows), k), numpy.float32)
        check(library.terrace_ann_search(
            self._open(), _pointer(rows), len(rows), self.dim, k, _options(**self._search),
            ids.ctypes.data_as(_IDS), _pointer(distances)))
        labels = numpy.append(self._labels, _NO_LABEL)[numpy.minimum(ids, len(self._labels))]
        return labels, distances + 1 if self.space == "ip" else distances

    def tune(self, vectors, queries, k=10, recall=0.95, latency=1e-3):
        """Chooses how far searches look, for a recall and a mean time in seconds, and keeps it. `vectors` are those of
        the index, with which exact neighbours are found."""
        rows, learnt = self._rows(vectors), self._rows(queries)
        chosen = call_for_json(library.terrace_ann_tune, self._open(), _pointer(rows), len(rows), _pointer(learnt),
                               len(learnt), self.dim, k, recall, latency)
        self.set_search(**{name: chosen[name] for name in ("ef1", "ef0", "beam", "ahead")})
        return chosen

    def save_index(self, path):
        check(library.terrace_ann_save(self._open(), encoded(os.fspath(path))))
        numpy.save(os.path.join(path, _LABELS), self._labels)

    def load_index(self, path, placement="memory", cache_bytes=None, num_threads=1):
        """Opens a folder. `placement`: `memory`, or `disk` for an index that is larger than that."""
        handle = c_void_p()
        check(library.terrace_ann_open(
            encoded(os.fspath(path)),
            _options(placement=placement, cache_bytes=cache_bytes, searchers=num_threads), byref(handle)))
        self.close()
        self._handle = handle
        known = self.describe()
        self.space, self.dim = known["metric"], known["dimension"]
        labels = os.path.join(path, _LABELS)
        self._labels = (numpy.load(labels) if os.path.exists(labels)
                        else numpy.arange(known["vectors"], dtype=numpy.uint64))
        if len(self._labels) != known["vectors"]:
            raise ValueError(f"{labels} names {len(self._labels)} vectors and the index holds {known['vectors']}")

    def describe(self):
        """What it holds and takes, and what searches did so far."""
        return call_for_json(library.terrace_ann_describe, self._open())

    def get_current_count(self):
        return len(self._labels)

    def _open(self):
        if self._handle is None:
            raise ValueError("the index is empty: add_items or load_index first")
        return self._handle

    def _rows(self, data):
        rows = numpy.ascontiguousarray(numpy.atleast_2d(numpy.asarray(data, dtype=numpy.float32)))
        if self.dim is None:
            self.dim = rows.shape[1]
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise ValueError(f"rows have {rows.shape[-1]} dimensions and the index has {self.dim}")
        return rows


def _pointer(rows):
    return rows.ctypes.data_as(_FLOATS)
