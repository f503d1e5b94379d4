# SPDX-License-Identifier: Apache-2.0
"""libterrace-c.so as Python sees it: its functions with their types, and failures as exceptions.

The C interface is include/terrace/terrace.h, whose contracts hold here, too. Calls that may take long let other Python
threads run meanwhile.
"""
import ctypes
import json
import os
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p

from . import errors

ABI_VERSION = 1
HOST = 0xFFFFFFFF  # as a tier: memory of this process, whose offsets are addresses
BACKGROUND, NORMAL, URGENT = 0, 1, 2

PROGRESS = CFUNCTYPE(c_int, c_void_p, c_char_p)


class Watch(Structure):
    _fields_ = [("progress", PROGRESS), ("user", c_void_p), ("stop", c_void_p)]


class Move(Structure):
    _fields_ = [
        ("from_tier", c_uint32),
        ("to_tier", c_uint32),
        ("from_", c_uint64),
        ("to", c_uint64),
        ("bytes", c_uint64),
    ]


class Traffic(Structure):
    _fields_ = [("bytes", c_uint64), ("transfers", c_uint64), ("busy_seconds", c_double)]


class Operand(Structure):
    _fields_ = [("address", c_void_p), ("bytes", c_uint64)]


RUN = CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint32, POINTER(Operand), c_size_t)
ALLOC = CFUNCTYPE(c_void_p, c_void_p, c_uint32, c_uint64, c_int)
RELEASE = CFUNCTYPE(c_int, c_void_p, c_uint32)
ADDRESS = CFUNCTYPE(c_void_p, c_void_p, c_uint32)


class Callbacks(Structure):
    _fields_ = [("user", c_void_p), ("run", RUN), ("alloc", ALLOC), ("release", RELEASE), ("address", ADDRESS)]


_TEXT = POINTER(c_void_p)  # a `char**` whose text is freed after it was copied
_SIGNATURES = {
    "terrace_abi_version": (c_uint32, []),
    "terrace_version": (c_char_p, []),
    "terrace_last_error": (c_char_p, []),
    "terrace_last_error_cause": (c_int, []),
    "terrace_text_free": (None, [c_void_p]),
    "terrace_stop_new": (c_void_p, []),
    "terrace_stop_request": (None, [c_void_p]),
    "terrace_stop_free": (None, [c_void_p]),
    "terrace_planners": (c_int, [_TEXT]),
    "terrace_machines": (c_int, [_TEXT]),
    "terrace_machine": (c_int, [c_char_p, c_char_p, POINTER(Watch), _TEXT]),
    "terrace_graph_check": (c_int, [c_char_p, _TEXT]),
    "terrace_plan": (c_int, [c_char_p, c_char_p, POINTER(Watch), _TEXT, _TEXT]),
    "terrace_verify": (c_int, [c_char_p, _TEXT]),
    "terrace_simulate": (c_int, [c_char_p, c_char_p, POINTER(Watch), _TEXT]),
    "terrace_advise": (c_int, [c_char_p, c_char_p, POINTER(Watch), _TEXT]),
    "terrace_tiers_open": (c_int, [POINTER(c_char_p), c_size_t, POINTER(c_void_p)]),
    "terrace_tiers_close": (None, [c_void_p]),
    "terrace_tiers_describe": (c_int, [c_void_p, _TEXT]),
    "terrace_tiers_memory": (c_void_p, [c_void_p, c_uint32]),
    "terrace_transfer_start": (c_int, [c_void_p, POINTER(Move), c_size_t, c_int, POINTER(c_void_p)]),
    "terrace_transfer_done": (c_int, [c_void_p]),
    "terrace_transfer_wait": (c_int, [c_void_p]),
    "terrace_transfer_free": (None, [c_void_p]),
    "terrace_tiers_traffic": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(Traffic)]),
    "terrace_executor_open": (c_int, [c_char_p, POINTER(Callbacks), POINTER(c_void_p)]),
    "terrace_executor_close": (None, [c_void_p]),
    "terrace_executor_write": (c_int, [c_void_p, c_uint32, c_void_p, c_uint64]),
    "terrace_executor_read": (c_int, [c_void_p, c_uint32, c_void_p, c_uint64]),
    "terrace_executor_write_part": (c_int, [c_void_p, c_uint32, c_uint64, c_void_p, c_uint64]),
    "terrace_executor_read_part": (c_int, [c_void_p, c_uint32, c_uint64, c_void_p, c_uint64]),
    "terrace_executor_address": (c_int, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "terrace_executor_queue": (c_void_p, [c_void_p]),
    "terrace_executor_bundle": (c_int, [c_void_p, POINTER(c_uint32), c_size_t]),
    "terrace_executor_step": (c_int, [c_void_p]),
    "terrace_executor_result": (c_int, [c_void_p, _TEXT]),
}

_NAME = "libterrace-c.so.0"


def _candidates():
    """Where the library may be: named by the user, beside the package (a wheel), in its prefix, or where the system looks."""
    if "TERRACE_LIBRARY" in os.environ:
        yield os.environ["TERRACE_LIBRARY"]
        return
    here = os.path.dirname(os.path.abspath(__file__))
    lib = os.path.dirname(os.path.dirname(os.path.dirname(here)))  # of PREFIX/lib/python3.N/dist-packages/terrace
    for folder in (here, lib, os.path.join(lib, f"{os.uname().machine}-linux-gnu")):
        if os.path.exists(os.path.join(folder, _NAME)):
            yield os.path.join(folder, _NAME)
    yield _NAME


def _load():
    refused = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
            break
        except OSError as error:
            refused.append(str(error))
    else:
        raise ImportError(
            f"{_NAME} cannot be loaded ({'; '.join(refused)}): run `make python` in Terrace's sources, install its wheel, "
            "or set TERRACE_LIBRARY to the library's path"
        )
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    version = library.terrace_abi_version()
    if version != ABI_VERSION:
        raise ImportError(f"{path} has ABI version {version} and this package wants {ABI_VERSION}: install both anew")
    return library


library = _load()


def check(status):
    """Raises the exception of a status that is not zero."""
    if status == 0:
        return
    sentence = library.terrace_last_error().decode("utf-8", "replace")
    kind = errors.BY_STATUS.get(status, errors.LibraryBug)
    raise kind(sentence, library.terrace_last_error_cause()) if kind is errors.SystemFailed else kind(sentence)


class Text:
    """A place for one text that the library returns."""

    def __init__(self):
        self.pointer = c_void_p()

    def place(self):
        return byref(self.pointer)

    def take(self):
        try:
            return ctypes.string_at(self.pointer.value).decode("utf-8")
        finally:
            library.terrace_text_free(self.pointer)
            self.pointer = c_void_p()


def encoded(text):
    return None if text is None else text.encode("utf-8")


def call_for_text(function, *arguments):
    text = Text()
    check(function(*arguments, text.place()))
    return text.take()


def call_for_json(function, *arguments):
    return json.loads(call_for_text(function, *arguments))


class Watching:
    """A watch that tells `progress(what)`. What it raises ends the work and is raised again by `check`."""

    def __init__(self, progress=None):
        self.raised = None
        self.progress = progress
        self._called = PROGRESS(self._call)  # kept alive while the library may call it
        self.watch = Watch(self._called, None, None) if progress else Watch()

    def _call(self, _, what):
        try:
            self.progress(what.decode("utf-8", "replace"))
            return 0
        except BaseException as raised:  # KeyboardInterrupt, too: it ends the work
            self.raised = raised
            return 1

    def pointer(self):
        return byref(self.watch)

    def check(self, status):
        if self.raised is not None:
            raise self.raised
        check(status)
