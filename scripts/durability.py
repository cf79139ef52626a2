"""``scripts/torture``: what was acknowledged is there after kill -9, and nothing else breaks. Counted and printed.

Writers are forked, acknowledge each write through a pipe once the call has returned, and are killed at a random moment.
"""

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from asap.core.errors import AsapError
from asap.experiments import Experiment, ExperimentStore
from asap.history.files import add_records, load_records
from asap.history.record import HistoryRecord
from asap.sharding_memory import Kind, Worklog, read_session, verify_session

WRITERS = 16
LONGEST_LIFE = 6.0
"""Of a writer, in the time of one write."""

RECORD = (Path(__file__).parents[1] / "history_db" / "asap-paper.jsonl").read_text(encoding="utf-8").splitlines()[0]


@dataclass
class Count:
    """What was tried, and what was lost."""

    name: str
    tried: int = 0
    acknowledged: int = 0
    lost: int = 0
    broken: int = 0

    @property
    def ok(self) -> bool:
        return not self.lost and not self.broken


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    counts = campaign(options.kills)
    print(f"{'what':12} {'tried':>6} {'acknowledged':>12} {'lost':>5} {'broken':>6}")
    for one in counts:
        print(f"{one.name:12} {one.tried:6} {one.acknowledged:12} {one.lost:5} {one.broken:6}")
    sys.exit(0 if all(one.ok for one in counts) else 1)


def campaign(kills: int) -> list[Count]:
    """Everything, with so many kills in all, each kind in a home of its own."""
    share = max(kills // 3, 1)
    killed = {"worklog": _worklog, "history": _history, "experiments": _experiments}
    counts = []
    for name, (write, stored) in killed.items():
        with _home():
            counts.append(_kill(name, kills - 2 * share if name == "worklog" else share, write, stored))
    for try_ in (_writers, _full_disk, _read_only, _clock_back):
        with _home():
            counts.append(try_())
    return counts


def _append(number: int) -> None:
    assert Worklog("tortured").append(Kind.NOTE, {"number": number, "text": "x" * (number % 5000)}) is not None


def _appended() -> set[int]:
    assert verify_session("tortured").reason is None or verify_session("tortured").torn_bytes
    return {record.fields["number"] for record in read_session("tortured") if "number" in record.fields}


def _record(number: int) -> HistoryRecord:
    return HistoryRecord.model_validate_json(RECORD).model_copy(
        update={"id": f"tortured-{number}", "other_changes": (f"number {number}",), "summary": f"Number {number}."}
    )


_worklog = (_append, _appended)
_history = (
    lambda number: add_records([_record(number)]),
    lambda: {int(one.id.removeprefix("tortured-")) for one in load_records() if one.id.startswith("tortured-")},
)
_experiments = (
    lambda number: ExperimentStore().add(Experiment(id=f"tortured-{number}")),
    lambda: {int(name.removeprefix("tortured-")) for name in ExperimentStore().ids() if name.startswith("tortured-")},
)


def _kill(name: str, kills: int, write: Callable[[int], object], stored: Callable[[], set[int]]) -> Count:
    began = time.monotonic()
    write(0)
    life = LONGEST_LIFE * (time.monotonic() - began)
    count, acknowledged, number = Count(name), {0}, 1
    for _ in range(kills):
        found = _killed(write, number, random.uniform(0, life))
        acknowledged |= found
        number = max(found, default=number) + 2  # the one after the last may have been written
        count.tried += 1
        if count.tried % 50 == 0 or count.tried == kills:
            try:
                count.lost = len(acknowledged - stored())
            except (AsapError, AssertionError, ValueError):
                count.broken += 1
    count.acknowledged = len(acknowledged)
    return count


def _killed(write: Callable[[int], object], first: int, life: float) -> set[int]:
    """Numbers that a writer acknowledged before it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        number = first
        while True:
            write(number)
            os.write(writing, number.to_bytes(8, "big"))
            number += 1
    os.close(writing)
    time.sleep(life)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    return {int.from_bytes(data[at : at + 8], "big") for at in range(0, len(data) - len(data) % 8, 8)}


def _writers(each: int = 25) -> Count:
    children = []
    for writer in range(WRITERS):
        child = os.fork()
        if not child:
            for number in range(each):
                _append(writer * each + number)
            os._exit(0)
        children.append(child)
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    verdict = verify_session("tortured")
    lost = WRITERS * each - len({record.fields["number"] for record in read_session("tortured")})
    return Count(f"{WRITERS} writers", WRITERS * each, verdict.records, lost, failed + (not verdict.ok))


def _full_disk() -> Count:
    """No file may grow above 20 kB: the worklog says so, and keeps what it had."""
    for number in range(5):
        _append(number)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        log = Worklog("tortured")
        refused = log.append(Kind.NOTE, {"number": 5, "text": "x" * 50_000}) is None and log.failed is not None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    _append(6)
    lost = len({0, 1, 2, 3, 4, 6} - _appended())
    return Count("full disk", 7, 6, lost, (not refused) + (not verify_session("tortured").ok))


def _read_only() -> Count:
    """A folder that cannot be written: one clear error, no exception in a run."""
    log = Worklog("tortured", Path("/proc/tortured"))
    refused = log.append(Kind.NOTE, {}) is None and log.failed is not None
    with patch.dict(os.environ, {"ASAP_HOME": "/proc/tortured"}):
        try:
            add_records([_record(0)])
            refused = False
        except AsapError:
            pass
    return Count("read-only", 2, 0, 0, not refused)


def _clock_back() -> Count:
    """Each record an hour before the one before it."""
    now = datetime.now(UTC)
    for number in range(20):
        with patch("asap.sharding_memory.worklog.datetime") as clock:
            clock.now.return_value = now - timedelta(hours=number)
            _append(number)
    return Count("clock back", 20, 20, 20 - len(_appended()), not verify_session("tortured").ok)


@contextmanager
def _home() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="asap-torture-") as folder, patch.dict(os.environ, {"ASAP_HOME": folder}):
        yield


if __name__ == "__main__":
    main()
