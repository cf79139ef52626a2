"""Several programs compiled at once, on this machine or on a Ray cluster; cached answers are not compiled again."""

import gzip
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from pydantic import ValidationError

from asap.compiler.programs.options import DEFAULT_LIMITS, LOCAL_ENGINE, CompileLimits
from asap.compiler.programs.request import CompileOutcome, CompileRequest
from asap.compiler.toolchain.interpreters import versions_of
from asap.compiler.toolchain.process import POLL_S, ChildProcess
from asap.core.errors import BadInputError, UsageError
from asap.core.files import home, private_file, private_folder, write_atomically
from asap.core.stores import warn_of_store

CACHEABLE = ("compiled", "sharded", "does_not_fit")
"""Answers that depend only on the request and the compiler."""

WITH_PROGRAM = ("compiled", "sharded")


def _folder(fingerprint: str) -> Path:
    return home() / "compiled" / fingerprint


def load_outcome(fingerprint: str) -> CompileOutcome | None:
    """The cached answer; ``None`` if there is none, or if it cannot be read."""
    folder = _folder(fingerprint)
    try:
        outcome = CompileOutcome.model_validate_json((folder / "outcome.json").read_text(encoding="utf-8"))
        program = folder / "program.hlo.gz"
        text = gzip.decompress(program.read_bytes()).decode("utf-8") if outcome.status in WITH_PROGRAM else ""
    except (OSError, EOFError, ValueError, ValidationError):
        return None
    return outcome.model_copy(update={"program": text})


def store_outcome(fingerprint: str, outcome: CompileOutcome) -> None:
    """Cache an answer, or say that it cannot be. The document is written last: no entry is left by a write cut off."""
    if outcome.status not in CACHEABLE:
        return
    folder = _folder(fingerprint)
    try:
        private_folder(folder)
        if outcome.program:
            temporary = private_file(folder / ".program.tmp")
            temporary.write_bytes(gzip.compress(outcome.program.encode("utf-8"), compresslevel=6))
            temporary.replace(folder / "program.hlo.gz")
        write_atomically(folder / "outcome.json", outcome.model_dump_json(indent=2))
    except (OSError, BadInputError) as error:
        warn_of_store(f"{folder.parent}: what was compiled is not kept, and is compiled again ({error})")


COMPILATION_BYTES = 2.5 * 2**30
"""Host memory allowed for one compilation of a scanned decoder (measured: 0.9 to 1.8 GB)."""


def compile_all(
    requests: Sequence[CompileRequest],
    *,
    engine: str = LOCAL_ENGINE,
    limits: CompileLimits = DEFAULT_LIMITS,
    progress: Callable[[str], None] = lambda stage: None,
) -> list[CompileOutcome]:
    """The answer to each request, in their order.

    What does not finish in time is compiled again with reduced effort, if there is time left.

    Raises:
        ConfigError: the compiler is missing, or is not the one that jax pins.
        UsageError: the engine is unknown.
    """
    answers = _outcomes(requests, engine, limits, progress)
    unfinished = [
        index
        for index, (request, answer) in enumerate(zip(requests, answers, strict=True))
        if answer.status == "timed_out" and request.effort == "full" and not request.on_cpu
    ]
    if unfinished and limits.seconds_left:
        progress(f"{len(unfinished)} did not finish; compiling with reduced effort")
        retries = [requests[index].model_copy(update={"effort": "reduced"}) for index in unfinished]
        second = _outcomes(retries, engine, limits, progress)
        for index, answer in zip(unfinished, second, strict=True):
            if answer.status in CACHEABLE:
                answers[index] = answer.model_copy(update={"full_effort_failure": answers[index].message})
    return answers


def _outcomes(
    requests: Sequence[CompileRequest], engine: str, limits: CompileLimits, progress: Callable[[str], None]
) -> list[CompileOutcome]:
    programs = list(zip(requests, versions_of(requests), strict=True))
    keys = [request.fingerprint(versions) for request, versions in programs]
    answers = {key: found for key in keys if (found := load_outcome(key)) is not None}
    missing = {key: program for key, program in zip(keys, programs, strict=True) if key not in answers}
    asked = {key: request for key, (request, _) in missing.items()}
    for done, (key, outcome) in enumerate(_run(engine, asked, limits), 1):
        answers[key] = outcome.model_copy(update={"versions": missing[key][1]})
        store_outcome(key, answers[key])
        progress(f"compiled {done} of {len(missing)}")
    return [answers[key] for key in keys]


def _run(
    engine: str, requests: dict[str, CompileRequest], limits: CompileLimits
) -> Iterable[tuple[str, CompileOutcome]]:
    if not requests:
        return ()
    if engine == LOCAL_ENGINE:
        return _locally(requests, limits)
    if engine.startswith("ray://"):
        from asap.compiler.toolchain.process import compile_on_ray

        return compile_on_ray(engine, requests, limits)
    raise UsageError(f"unknown engine {engine!r}", where="--engine", hint="local or ray://HOST:PORT")


def _locally(requests: dict[str, CompileRequest], limits: CompileLimits) -> Iterator[tuple[str, CompileOutcome]]:
    """As many child processes as this machine carries; when the caller stops, every child is killed.

    No thread waits for them: an interrupt inside a lock that another thread needs would leave both waiting.
    """
    waiting, workers = list(requests.items()), max_workers()
    running: dict[str, ChildProcess] = {}
    with ExitStack() as stack:
        while waiting or running:
            while waiting and len(running) < workers:
                key, request = waiting.pop(0)
                running[key] = stack.enter_context(ChildProcess(request, limits))
            for key, child in list(running.items()):
                if (outcome := child.poll()) is not None:
                    del running[key]
                    child.close()
                    yield key, outcome
            time.sleep(POLL_S)


def max_workers() -> int:
    """Parallel compilations: one per processor, as far as memory allows."""
    return max(1, min(os.cpu_count() or 1, int(_available_memory() // COMPILATION_BYTES)))


def _available_memory() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return COMPILATION_BYTES
    found = next((line for line in lines if line.startswith("MemAvailable:")), "MemAvailable: 0 kB")
    return float(found.split()[1]) * 1024
