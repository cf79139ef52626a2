"""Compilations on a Ray cluster. A worker that dies takes nothing with it: its work is given to another."""

import logging
from collections.abc import Iterator

from asap.compiler.process import Limits, run_child
from asap.compiler.request import Outcome, Request
from asap.core.errors import ConfigError, ServiceError

_RETRIES = 3
_POLL_S = 1.0


def on_cluster(address: str, requests: dict[str, Request], limits: Limits) -> Iterator[tuple[str, Outcome]]:
    """Answers as they come in, by key.

    Args:
        address: ``ray://HOST:PORT`` of a cluster; ``ray://local`` starts or joins one on this machine.
        requests: by key.
        limits: of each compilation.

    Raises:
        ConfigError: ray is not installed.
        ServiceError: the cluster cannot be reached, or lost a worker too often.
    """
    try:
        import ray
        from ray.exceptions import RayError
    except ImportError:
        raise ConfigError("is not installed", where="ray", hint="pip install 'asap[ray]'") from None
    own = not ray.is_initialized()
    try:
        if own:
            there = None if address == "ray://local" else address
            ray.init(address=there, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise ServiceError("the Ray cluster cannot be reached", where=address) from error
    remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(_compile_there)
    waiting = {remote.remote(request, limits): key for key, request in requests.items()}
    try:
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=_POLL_S)
            for reference in done:
                yield waiting.pop(reference), _decode(ray.get(reference))
    except RayError as error:
        raise ServiceError("a compilation was lost on the cluster", where=address) from error
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)
        if own:
            ray.shutdown()


def _compile_there(request: Request, limits: Limits) -> tuple[str, str]:
    outcome = run_child(request, limits)
    return outcome.model_dump_json(), outcome.program


def _decode(answer: tuple[str, str]) -> Outcome:
    document, program = answer
    return Outcome.model_validate_json(document).model_copy(update={"program": program})
