"""How long things take: medians, and ratios to a peer that is measured in turn with us in the same run."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ASAP = Path(sys.executable).parent / "asap"
RUNS = 7

Result = dict[str, object]


def median(call: Callable[[], object]) -> float:
    call()
    return statistics.median(time_of(call) for _ in range(RUNS))


def calls(ours: Callable[[], object], peers: Callable[[], object], limit: float, runs: int = RUNS) -> Result:
    ours()
    peers()
    pairs = [(time_of(ours), time_of(peers)) for _ in range(runs)]
    return _summary(pairs, limit)


def ratio(ours: list[str], peer: list[str], limit: float) -> Result:
    run(ours)
    run(peer)
    return _summary([(run(ours), run(peer)) for _ in range(RUNS)], limit)


def _summary(pairs: list[tuple[float, float]], limit: float) -> Result:
    return {
        "seconds": statistics.median(a for a, _ in pairs),
        "peer_seconds": statistics.median(b for _, b in pairs),
        "ratio": statistics.median(a / b for a, b in pairs),
        "limit_ratio": limit,
    }


def run(command: list[str], environment: dict[str, str] | None = None) -> float:
    """Seconds of a command as a user has it: Python keeps the compiled modules."""
    environment = dict(os.environ if environment is None else environment)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return time_of(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment))


def time_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@contextmanager
def home() -> Iterator[str]:
    before = os.environ.get("ASAP_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ASAP_HOME"] = folder
        try:
            yield folder
        finally:
            if before is None:
                del os.environ["ASAP_HOME"]
            else:
                os.environ["ASAP_HOME"] = before
