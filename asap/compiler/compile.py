"""Several programs compiled at once, answers from the cache first, here or on a Ray cluster."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from asap.compiler.cache import LASTING, keep, recall
from asap.compiler.choice import LOCAL
from asap.compiler.installed import versions_for
from asap.compiler.process import Limits, run_child
from asap.compiler.request import Outcome, Request
from asap.core.errors import UsageError

PROCESS_BYTES = 2.5 * 2**30
"""Host memory to reckon with for one compilation of a scanned decoder (measured: 0.9 to 1.8 GB)."""


def compile_all(
    requests: Sequence[Request],
    *,
    engine: str = LOCAL,
    limits: Limits | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> list[Outcome]:
    """The answer to each request, in their order.

    What does not finish is compiled once more with a reduced effort of the compiler.

    Raises:
        ConfigError: the compiler is missing or is not the one that jax pins.
        UsageError: the engine is unknown.
    """
    answers = _answers(requests, engine, limits or Limits(), progress)
    late = [
        index
        for index, (request, answer) in enumerate(zip(requests, answers, strict=True))
        if answer.status == "timed_out" and request.effort == "full" and not request.on_cpu
    ]
    if late:
        progress(f"{len(late)} did not finish; compiling with reduced effort")
        again = [requests[index].model_copy(update={"effort": "reduced"}) for index in late]
        for index, answer in zip(late, _answers(again, engine, limits or Limits(), progress), strict=True):
            if answer.status in LASTING:
                answers[index] = answer.model_copy(update={"instead_of": answers[index].message})
    return answers


def _answers(
    requests: Sequence[Request], engine: str, limits: Limits, progress: Callable[[str], None]
) -> list[Outcome]:
    programs = list(zip(requests, versions_for(requests), strict=True))
    keys = [request.fingerprint(versions) for request, versions in programs]
    answers = {key: found for key in keys if (found := recall(key)) is not None}
    missing = {key: program for key, program in zip(keys, programs, strict=True) if key not in answers}
    asked = {key: request for key, (request, _) in missing.items()}
    for done, (key, outcome) in enumerate(_run(engine, asked, limits), 1):
        answers[key] = outcome.model_copy(update={"versions": missing[key][1]})
        keep(key, answers[key])
        progress(f"compiled {done} of {len(missing)}")
    return [answers[key] for key in keys]


def _run(engine: str, requests: dict[str, Request], limits: Limits) -> Iterable[tuple[str, Outcome]]:
    if not requests:
        return ()
    if engine == LOCAL:
        return _locally(requests, limits)
    if engine.startswith("ray://"):
        from asap.compiler.cluster import on_cluster

        return on_cluster(engine, requests, limits)
    raise UsageError(f"unknown engine {engine!r}", where="--engine", hint="local or ray://HOST:PORT")


def _locally(requests: dict[str, Request], limits: Limits) -> Iterator[tuple[str, Outcome]]:
    """A thread a child process; when the caller goes, every child goes."""
    stop = threading.Event()
    pool = ThreadPoolExecutor(workers(), thread_name_prefix="compile")
    try:
        futures = {pool.submit(run_child, request, limits, stop): key for key, request in requests.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def workers() -> int:
    """Compilations at a time: as many as there are processors and as memory allows."""
    return max(1, min(os.cpu_count() or 1, int(_available_memory() // PROCESS_BYTES)))


def _available_memory() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return PROCESS_BYTES
    found = next((line for line in lines if line.startswith("MemAvailable:")), "MemAvailable: 0 kB")
    return float(found.split()[1]) * 1024
