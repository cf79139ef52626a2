"""Compilations on a Ray cluster. What a lost worker was compiling is given to another one."""

import logging
import math
from collections.abc import Iterator
from dataclasses import replace

from asap.compiler.programs.options import CompileLimits
from asap.compiler.programs.outcome import CompileOutcome
from asap.compiler.programs.request import CompileRequest
from asap.compiler.toolchain.process import run_child
from asap.core.errors import ConfigError, ServiceError

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
        raise ConfigError("is not installed", where="ray", hint="pip install 'asap[ray]'") from None
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
