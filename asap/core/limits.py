"""Reading of what strangers wrote, in a process of its own with limits of processor time, memory and output.

Where a process cannot be forked, or not safely as other threads run, the text is read here, without limits.
"""

import os
import pickle
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from asap.core.errors import AsapError, BadInputError
from asap.core.units import GIB, format_bytes

_Read = TypeVar("_Read")
_CAN_FORK = sys.platform == "linux"
_WALL = 10
"""Seconds of wall time for each of processor time, after which a reader that waits is ended."""


@dataclass(frozen=True)
class Limits:
    """What reading may cost.

    Args:
        seconds: of processor time.
        memory: bytes beyond what this process has.
        output: bytes of what was read.
    """

    seconds: int = 20
    memory: int = 4 * GIB
    output: int = 64 * 2**20


FILE_LIMITS = Limits()
"""Of one file and all that it includes: the largest configuration of the corpora, 1 MB, takes 2 s."""


class LimitReachedError(BadInputError):
    """Reading took more than it may."""


def within(limits: Limits, read: Callable[[], _Read], where: str) -> _Read:
    """What ``read`` returns or raises; its warnings are repeated here.

    Raises:
        LimitReachedError: a limit was reached, or the process died.
    """
    if not _CAN_FORK or threading.active_count() > 1:
        return read()
    receiving, sending = os.pipe()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # other threads: the child has none
        child = os.fork()
    if not child:
        os.close(receiving)
        _answer(limits, read, sending)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        try:
            data = pipe.read(limits.output + 1)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            pipe.close()  # a child that still writes ends
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if len(data) > limits.output:
        raise LimitReachedError(f"cannot be read: it becomes more than {format_bytes(limits.output)}", where=where)
    if -status in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM):
        raise LimitReachedError(f"cannot be read within {limits.seconds} s of processor time", where=where)
    if status != 0 or not data:
        why = "nested or chained too deeply" if -status in (signal.SIGSEGV, signal.SIGABRT) else str(status)
        raise LimitReachedError(f"cannot be read: its reader died ({why})", where=where)
    found, raised, warned = pickle.loads(data)  # written by this program
    for message, category in warned:
        warnings.warn(message, category, stacklevel=2)
    if raised is not None:
        raise raised
    return found


def _answer(limits: Limits, read: Callable[[], object], sending: int) -> None:
    """In the child: never returns."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        signal.alarm(_WALL * limits.seconds)
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = int(used.ru_utime + used.ru_stime) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (spent + limits.seconds, spent + limits.seconds + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + limits.memory, resource.RLIM_INFINITY))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found = raised = None
            try:
                found = read()
            except MemoryError:
                raised = LimitReachedError(f"cannot be read within {format_bytes(limits.memory)} of memory")
            except AsapError as error:
                raised = error
        ours = [(str(each.message), each.category) for each in warned if each.category.__module__.startswith("asap.")]
        data = pickle.dumps((found, raised, ours))
        with os.fdopen(sending, "wb") as pipe:
            pipe.write(data)
        code = 0
    except Exception as error:
        print(f"asap: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(code)


def _address_space() -> int:
    """Bytes that this process maps."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
