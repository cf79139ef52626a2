"""One compilation in a child process with limits on time and memory; no process or file outlives it."""

import contextlib
import gzip
import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from asap.compiler.programs.options import FLAGS_VARIABLE, CompileLimits
from asap.compiler.programs.request import CompileOutcome, CompileRequest
from asap.compiler.toolchain.child import ENVIRONMENT
from asap.compiler.toolchain.interpreters import package_path, virtual_devices
from asap.core.errors import ConfigError, ServiceError, extra_hint
from asap.core.files import scratch_folder
from asap.core.text import plain
from asap.core.units import format_bytes, format_seconds

POLL_S = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LONGEST_MESSAGE = 300
_LOG_PREFIXES = ("http", "*** ", "PC: ", "    @ ", "E0000", "W0000", "I0000")
"""Prefixes of lines of stack traces and logs."""


class ChildProcess:
    """A compilation under way in a child process. Leaving the context kills it and removes its files.

    A crash, a hang or a limit is an outcome, not an exception.
    """

    def __init__(self, request: CompileRequest, limits: CompileLimits) -> None:
        self._seconds, self._memory_bytes = limits.seconds_left, limits.memory_bytes
        self._begin = time.monotonic()
        self._cleanup = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            self._folder = stack.enter_context(scratch_folder("compile"))
            (self._folder / "request.json").write_text(request.model_dump_json(), encoding="utf-8")
            stderr = stack.enter_context((self._folder / "stderr").open("wb"))
            self._process = subprocess.Popen(
                [
                    request.python or sys.executable,
                    "-m",
                    "asap.compiler.toolchain.child",
                    str(self._folder),
                    str(os.getpid()),
                ],
                env=_environment(request, self._folder),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
            )
            stack.callback(_kill, self._process)
            self._cleanup = stack.pop_all()

    def __enter__(self) -> "ChildProcess":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the child if it still runs, and remove its files. May be called twice."""
        self._cleanup.close()

    def poll(self) -> CompileOutcome | None:
        """The outcome, or None while the child compiles."""
        if self._process.poll() is not None:
            return _read(self._folder, self._process.returncode)
        if (elapsed := time.monotonic() - self._begin) > self._seconds:
            reason = f"stopped after {format_seconds(elapsed)}"
            return CompileOutcome(status="timed_out", message=reason, seconds=elapsed)
        if (resident := _resident(self._process.pid)) > self._memory_bytes:
            reason = f"stopped at {format_bytes(resident)} of host memory"
            return CompileOutcome(status="out_of_host_memory", message=reason, seconds=elapsed)
        return None


def run_child(request: CompileRequest, limits: CompileLimits) -> CompileOutcome:
    """Compile in a child process and wait for the outcome."""
    with ChildProcess(request, limits) as child:
        while (outcome := child.poll()) is None:
            time.sleep(POLL_S)
    return outcome


def _environment(request: CompileRequest, folder: Path) -> dict[str, str]:
    added = {"PYTHONPATH": package_path(folder), "TPU_LOG_DIR": "disabled", FLAGS_VARIABLE: " ".join(request.flags)}
    if request.on_cpu:
        added["XLA_FLAGS"] = virtual_devices(request.plan.devices)
    return {**os.environ, **ENVIRONMENT, **added}


def _read(folder: Path, code: int) -> CompileOutcome:
    answer = folder / "outcome.json"
    if not answer.exists():
        lines = (folder / "stderr").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return CompileOutcome(
            status="crashed", message=plain(f"the process died ({reason}){_failure_line(lines)}", _LONGEST_MESSAGE)
        )
    outcome = CompileOutcome.model_validate_json(answer.read_text(encoding="utf-8"))
    program = folder / "program.hlo.gz"
    text = gzip.decompress(program.read_bytes()).decode("utf-8") if program.exists() else ""
    return outcome.model_copy(update={"program": text})


def _failure_line(lines: list[str]) -> str:
    """The last failed check, else the last line that is neither log nor stack trace."""
    messages = [line for line in lines if not line.startswith(_LOG_PREFIXES)]
    checks = [line for line in messages if "Check failed" in line]
    chosen = (checks or messages)[-1:]
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


_RETRIES = 3
_POLL_S = 1.0


def compile_on_ray(
    address: str, requests: dict[str, CompileRequest], limits: CompileLimits
) -> Iterator[tuple[str, CompileOutcome]]:
    """Answers as they come in, by key.

    Args:
        address: ``ray://HOST:PORT`` of a cluster; ``ray://local`` starts or joins one on this machine.
        requests: by key.
        limits: limits of each compilation.

    Raises:
        ConfigError: ray is not installed.
        ServiceError: the cluster cannot be reached, or lost a worker too often.
    """
    try:
        import ray
        from ray.exceptions import RayError
    except ImportError:
        raise ConfigError("is not installed", where="ray", hint=extra_hint("ray")) from None
    started_here = not ray.is_initialized()
    try:
        if started_here:
            host = None if address == "ray://local" else address
            ray.init(address=host, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise ServiceError("the Ray cluster cannot be reached", where=address) from error
    remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(_compile_on_worker)
    there = replace(limits, seconds=limits.seconds_left, until=math.inf)
    waiting = {remote.remote(request, there): key for key, request in requests.items()}
    try:
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=_POLL_S)
            for reference in done:
                yield waiting.pop(reference), _decode(ray.get(reference))
    except RayError as error:
        raise ServiceError("the cluster lost a worker too often", where=address) from error
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)
        if started_here:
            ray.shutdown()


def _compile_on_worker(request: CompileRequest, limits: CompileLimits) -> tuple[str, str]:
    outcome = run_child(request, limits)
    return outcome.model_dump_json(), outcome.program


def _decode(answer: tuple[str, str]) -> CompileOutcome:
    document, program = answer
    return CompileOutcome.model_validate_json(document).model_copy(update={"program": program})
