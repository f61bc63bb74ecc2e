"""Run a program so that it cannot outlive its parent or its limits.

Usage: ``python -S -E _guard.py PARENT_PID ADDRESS_SPACE_BYTES FILE_SIZE_BYTES PROGRAM [ARGUMENTS ...]``

Runs between fork and the engine, in the child: asks the kernel to kill this process when its
parent ends, sets the resource limits, and then becomes the engine by ``exec`` (the request
survives exec). A limit of 0 means none. Doing this here and not in a ``preexec_fn`` keeps the
parent free to use threads. Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _die_with_parent(parent: int) -> None:
    """Ask for SIGKILL at the parent's death, and leave now if that has already happened."""
    if sys.platform == "linux":
        import ctypes

        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
            sys.stderr.write("guard: the parent-death signal could not be set\n")
    # the parent may have ended between fork and prctl: then no signal will ever come
    if os.getppid() != parent:
        sys.exit(3)


def _limit(address_space: int, file_size: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, value in ((resource.RLIMIT_AS, address_space), (resource.RLIMIT_FSIZE, file_size)):
        if value > 0:
            _, hard = resource.getrlimit(kind)
            wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (wanted, wanted))


def main() -> None:
    """Set everything up and become the program."""
    parent, address_space, file_size = (int(text) for text in sys.argv[1:4])
    _die_with_parent(parent)
    _limit(address_space, file_size)
    os.execvpe(sys.argv[4], sys.argv[4:], os.environ)  # noqa: S606 (becoming the engine is what this file is for)


main()
