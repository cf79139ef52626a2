"""One compilation in a child process, with a limit of time and memory, of which nothing is left behind."""

import contextlib
import gzip
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from asap.compiler.child import ENVIRONMENT
from asap.compiler.flags import VARIABLE
from asap.compiler.installed import path_to_us
from asap.compiler.request import Outcome, Request
from asap.core.text import plain
from asap.core.units import format_bytes

_POLL_S = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SHOWN = 300
_UNTELLING = ("http", "*** ", "PC: ", "    @ ", "E0000", "W0000", "I0000")
"""How the lines of a stack trace and of the log begin."""
_QUICK = "--xla_backend_optimization_level=0"
"""The machine code of the CPU pipeline is thrown away, so it need not be good."""


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes of resident memory of one compilation: several times what a scanned decoder takes."""

    seconds: float = 900.0
    memory_bytes: float = 8 * 2**30


def run_child(request: Request, limits: Limits, stop: threading.Event | None = None) -> Outcome:
    """Compile in a child process. A crash, a hang or a limit is an outcome, not an exception."""
    with tempfile.TemporaryDirectory(prefix="asap-compile-") as name:
        folder = Path(name)
        (folder / "request.json").write_text(request.model_dump_json(), encoding="utf-8")
        with (folder / "stderr").open("wb") as stderr:
            child = subprocess.Popen(
                [request.python or sys.executable, "-m", "asap.compiler.child", name, str(os.getpid())],
                env=_environment(request, folder),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                ended = _watch(child, limits, stop)
            finally:
                _kill(child)
        return ended or _read(folder, child.returncode)


def _environment(request: Request, folder: Path) -> dict[str, str]:
    own = {"PYTHONPATH": path_to_us(folder), "TPU_LOG_DIR": "disabled", VARIABLE: " ".join(request.flags)}
    if request.on_cpu:
        own["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={request.plan.devices} {_QUICK}"
    return {**os.environ, **ENVIRONMENT, **own}


def _watch(child: "subprocess.Popen[bytes]", limits: Limits, stop: threading.Event | None) -> Outcome | None:
    begin = time.monotonic()
    while child.poll() is None:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        if (elapsed := time.monotonic() - begin) > limits.seconds:
            return Outcome(status="timed_out", message=f"stopped after {elapsed:.0f} s", seconds=elapsed)
        if (held := _resident(child.pid)) > limits.memory_bytes:
            reason = f"stopped at {format_bytes(held)} of host memory"
            return Outcome(status="out_of_host_memory", message=reason, seconds=elapsed)
        time.sleep(_POLL_S)
    return None


def _read(folder: Path, code: int) -> Outcome:
    answer = folder / "outcome.json"
    if not answer.exists():
        lines = (folder / "stderr").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Outcome(status="crashed", message=plain(f"it died ({reason}){_last_words(lines)}", _SHOWN))
    outcome = Outcome.model_validate_json(answer.read_text(encoding="utf-8"))
    program = folder / "program.hlo.gz"
    text = gzip.decompress(program.read_bytes()).decode("utf-8") if program.exists() else ""
    return outcome.model_copy(update={"program": text})


def _last_words(lines: list[str]) -> str:
    """The failed check if one is named, else the last line that says something."""
    telling = [line for line in lines if not line.startswith(_UNTELLING)]
    checks = [line for line in telling if "Check failed" in line]
    chosen = (checks or telling)[-1:]
    return f": {chosen[0]}" if chosen else ""


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _kill(child: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
