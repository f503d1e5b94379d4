# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as exceptions: each carries the library's own sentence for the user."""


class Error(Exception):
    """The base of all of them."""


class InvalidRequest(Error, ValueError):
    """The request itself is wrong: misspelt, out of range, a text that is not what it should be."""


class NoRoom(Error):
    """It does not fit: the sentence names the tier or kernel and the bytes missing."""


class Unsupported(Error):
    """This computer or this build does not offer it."""


class SystemFailed(Error, OSError):
    """The system failed: a full or broken disk, memory that is refused. `errno` is the system's, or 0."""

    def __init__(self, sentence, errno=0):
        super().__init__(sentence)
        self.errno = errno

    def __str__(self):
        return self.args[0]


class Stopped(Error):
    """A stop was requested."""


class LibraryBug(Error):
    """A mistake of the library's own."""


#: By status of the C interface; TERRACE_CALLBACK has none, for the callback's own exception is raised.
BY_STATUS = {1: InvalidRequest, 2: NoRoom, 3: Unsupported, 4: SystemFailed, 5: Stopped, 6: Error, 7: LibraryBug}
