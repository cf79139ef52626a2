"""Why a run died, read from the end of its log and its exit code. The text is somebody else's: it is quoted, cut, and
never obeyed."""

import re
from collections.abc import Sequence

from asap.core.feedback import Feedback
from asap.core.text import plain
from asap.core.units import format_bytes
from asap.optimize.outcome import Code, Status, feedback

_UNITS = {"B": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
_HBM = re.compile(r"Used ([\d.]+)([KMGT]) of ([\d.]+)([KMGT]) hbm")  # XLA:TPU, "Ran out of memory in memory space hbm"
_CUDA = re.compile(r"Tried to allocate ([\d.]+) ([KMGT])iB")  # PyTorch, "CUDA out of memory"
_OUT_OF_MEMORY = re.compile(
    r"RESOURCE_EXHAUSTED|Ran out of memory in memory space|CUDA out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY"
)
_PREEMPTED = re.compile(
    r"preempted|DUE TO PREEMPTION|DUE TO NODE FAILURE|\bEvicted\b|maintenance event|slice is unhealthy"
    r"|coordination service.*(?:unavailable|disconnected)|remote process exited or there was a network error",
    re.IGNORECASE,
)
_INVALID = re.compile(
    r"^(?:\w{1,100}\.){0,20}(?:ValueError|AssertionError|NotImplementedError|KeyError|ValidationError|ConfigError|"
    r"InvalidArgumentError|TypeError)\b.*|.*\berror: (?:unrecognized|argument|the following arguments).*"
)
_RAISED = re.compile(r"^(?:\w{1,100}\.){0,20}\w*(?:Error|Exception|Interrupt)\b.*")
_QUOTED = 200
_KILLED = 137
_TERMINATED = 143


def why_it_died(lines: Sequence[str], code: int | None, steps: int) -> tuple[Status, Feedback]:
    """The reason, and whether the configuration is it.

    Args:
        lines: the end of the log.
        code: of the exit; ``None`` where everything was killed.
        steps: that were completed.
    """
    text = "\n".join(lines)
    if _OUT_OF_MEMORY.search(text):
        return "rejected", feedback(Code.OUT_OF_MEMORY, _how_much(text))
    if code is None or _PREEMPTED.search(text):
        quoted = _last(lines, _PREEMPTED)
        gone = "the process and all around it were killed" if code is None else f"it was preempted: {quoted}"
        return "lost", feedback(Code.PREEMPTED, gone)
    if not steps and (refused := _last(lines, _INVALID)):
        return "rejected", feedback(Code.INVALID, f"the launcher refused it: {refused}")
    if code == 0:
        raised = _last(lines, _RAISED)
        found = "ended well, but its log has too few steps behind the warm-up"
        return "failed", feedback(Code.NO_STEP_TIME, f"{found}: {raised}" if raised else found if steps else None)
    quoted = _last(lines, _RAISED) or plain(next((line for line in reversed(lines) if line.strip()), ""), _QUOTED)
    reason = {_KILLED: "killed, perhaps out of host memory", _TERMINATED: "terminated by somebody else"}.get(code)
    said = f": {quoted}" if quoted else ""
    return "failed", feedback(Code.CRASHED, f"exit code {code}{f' ({reason})' if reason else ''}{said}")


def _how_much(text: str) -> str:
    if found := _HBM.search(text):
        used, limit = (float(found[n]) * _UNITS[found[n + 1]] for n in (1, 3))
        return f"out of HBM: needs {format_bytes(used)} of {format_bytes(limit)}, {format_bytes(used - limit)} too much"
    if found := _CUDA.search(text):
        return f"out of device memory, when {format_bytes(float(found[1]) * _UNITS[found[2]])} more were asked for"
    return "out of device memory"


def _last(lines: Sequence[str], pattern: re.Pattern[str]) -> str:
    return plain(next((line for line in reversed(lines) if pattern.search(line)), ""), _QUOTED)
