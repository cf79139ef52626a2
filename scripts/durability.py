"""``scripts/measure torture``: what was acknowledged is there after kill -9, and nothing else breaks.

Writers are forked, acknowledge each write through a pipe once the call has returned, and are killed at a random moment.
"""

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from asap.core.errors import AsapError
from asap.core.files import home, scratch_folder
from asap.history.files import add_records
from asap.sharding_memory import Kind, Worklog, read_session, verify_session
from durable_writes import KILLED, append, appended, history_record

WRITERS = 16
LONGEST_LIFE = 6.0
"""Of a writer, in the time of one write."""

FILLING = 60
"""Writes of each kind to a disk that holds fewer."""

NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]


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
    parser = argparse.ArgumentParser(prog="scripts/measure torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        acknowledged, broken = _fill()
        print(acknowledged)
        sys.exit(3 * bool(broken))
    random.seed(options.seed)
    counts = campaign(options.kills)
    print(f"{'what':12} {'tried':>6} {'acknowledged':>12} {'lost':>5} {'broken':>6}")
    for one in counts:
        print(f"{one.name:12} {one.tried:6} {one.acknowledged:12} {one.lost:5} {one.broken:6}")
    sys.exit(0 if all(one.ok for one in counts) else 1)


def campaign(kills: int, index: bool = True) -> list[Count]:
    """Everything, with so many kills in all, each kind in a home of its own.

    Args:
        kills: writers that are killed; a write of the index is slow and gets a twentieth of them.
        index: whether writers of the search index are killed as well.
    """
    counts = []
    for name, (share, write, stored) in KILLED.items():
        if index or name != "index":
            with _home():
                counts.append(_kill(name, max(round(kills * share), 1), write, stored))
    for try_ in (_writers, _full_disk, _read_only, _clock_back):
        with _home():
            counts.append(try_())
    return counts


def _kill(name: str, kills: int, write: Callable[[int], object], stored: Callable[[], set[int]]) -> Count:
    _in_child(lambda: write(0))
    began = time.monotonic()
    _in_child(lambda: write(1))
    life = LONGEST_LIFE * (time.monotonic() - began)
    count, acknowledged, number = Count(name), {0, 1}, 2
    for _ in range(kills):
        found = _killed(write, number, random.uniform(0, life))
        acknowledged |= found
        number = max(found, default=number) + 2  # the one after the last may have been written
        count.tried += 1
        if count.tried % 50 == 0 or count.tried == kills:
            on_record = _in_child(lambda: stored())
            count.broken += on_record is None
            count.lost = len(acknowledged - (on_record or set()))
    count.acknowledged = len(acknowledged)
    return count


def _in_child(act: Callable[[], object]) -> set[int] | None:
    """The numbers that a function returns in a process of its own; ``None`` if it fails. No state is shared so."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        code = 1
        try:
            found = act()
            with os.fdopen(writing, "wb") as pipe:
                pipe.writelines(number.to_bytes(8, "big") for number in (found if isinstance(found, set) else ()))
            code = 0
        except (AsapError, AssertionError, ValueError) as error:
            print(f"broken: {error!r}", file=sys.stderr)
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = _numbers(pipe.read())
    return found if os.waitpid(child, 0)[1] == 0 else None


def _numbers(data: bytes) -> set[int]:
    return {int.from_bytes(data[at : at + 8], "big") for at in range(0, len(data) - len(data) % 8, 8)}


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
        return _numbers(pipe.read())


def _writers(each: int = 25) -> Count:
    children = []
    for writer in range(WRITERS):
        child = os.fork()
        if not child:
            for number in range(each):
                append(writer * each + number)
            os._exit(0)
        children.append(child)
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    verdict = verify_session("tortured")
    lost = WRITERS * each - len({record.fields["number"] for record in read_session("tortured")})
    return Count(f"{WRITERS} writers", WRITERS * each, verdict.records, lost, failed + (not verdict.ok))


def _full_disk() -> Count:
    """A disk of 64 kB, or no file above 20 kB where none may be mounted: each writer says so and keeps what it had."""
    folder = home()
    mounted = [
        *NAMESPACE,
        f'mount -t tmpfs -o size=64k none "{folder}" && exec "$0" -m durability --fill',
        sys.executable,
    ]
    done = subprocess.run(mounted, capture_output=True, text=True, check=False)
    if done.returncode in (0, 3):
        return Count("full disk", 3 * FILLING, int(done.stdout or 0), 0, done.returncode)  # 3: broken
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        acknowledged, broken = _fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return Count("full file", 3 * FILLING, acknowledged, 0, broken)


def _fill() -> tuple[int, int]:
    """Write until nothing fits any more, and then still; acknowledged writes, and kinds that lost one or broke."""
    kept: dict[str, set[int]] = {"worklog": set(), "history": set(), "experiments": set()}
    for number in range(FILLING):
        for name, numbers in kept.items():
            with suppress(AsapError, AssertionError):
                KILLED[name][1](number)
                numbers.add(number)
    refused = any(len(numbers) < FILLING for numbers in kept.values())
    broken = sum(not numbers <= KILLED[name][2]() for name, numbers in kept.items())
    return sum(map(len, kept.values())), broken + (not refused)


def _read_only() -> Count:
    """A folder that cannot be written: one clear error, no exception in a run."""
    log = Worklog("tortured", Path("/proc/tortured"))
    refused = log.append(Kind.NOTE, {}) is None and log.failed is not None
    with patch.dict(os.environ, {"ASAP_HOME": "/proc/tortured"}):
        try:
            add_records([history_record(0)])
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
            append(number)
    return Count("clock back", 20, 20, 20 - len(appended()), not verify_session("tortured").ok)


@contextmanager
def _home() -> Iterator[None]:
    with scratch_folder("torture") as folder, patch.dict(os.environ, {"ASAP_HOME": str(folder)}):
        yield


if __name__ == "__main__":
    main()
