"""Processes that use one home for long: python scripts/soak.py [--minutes N] [--processes N].

Each process runs commands in turn, again and again, as servers and notebooks do. Its memory and its open files must
stay flat once each command has run twice, and no command may end with an undocumented code. At the end every store is
intact.
"""

import argparse
import gc
import os
import resource
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from asap.core.files import scratch_folder
from fuzzing.case import run

RUN = "llama-8b-tensor-16"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("analyze", RUN),
    ("chat", RUN),
    ("predict", RUN, "--plan", "data=32 model=8 remat=full"),
    ("experiments", "list"),
    ("history", "search", "FSDP all-gather"),
    ("knowledge", "search", "FSDP all-gather"),
    ("sessions", "list"),
    ("accuracy", "ledger"),
    ("report", RUN),
)
SAID = "oom 1\nnext\nforget 1\n"
LARGEST_GROWTH = 1.15
"""Of memory between the second round of commands and the end; Python's allocator keeps what it had at most."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--processes", type=int, default=8)
    options = parser.parse_args()
    with scratch_folder("soak") as folder:
        os.environ["ASAP_HOME"] = str(folder / "home")
        os.chdir(folder)
        until = time.monotonic() + 60 * options.minutes
        children = [_forked(lambda number=number: _work(number, until)) for number in range(options.processes)]
        failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
        print(run("doctor").partition("home ")[2])
    print(f"{options.processes} processes, {options.minutes:g} minutes: {failed} not as they should be")
    sys.exit(bool(failed))


def _forked(work: Callable[[], bool]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = 0 if work() else 1
    finally:
        os._exit(code)


def _work(number: int, until: float) -> bool:
    """Whether all went well; prints the first and the last memory and files."""
    first, done, wrong = None, 0, 0
    for command in cycle(COMMANDS[number % len(COMMANDS) :] + COMMANDS[: number % len(COMMANDS)]):
        if time.monotonic() > until:
            break
        try:
            run(*command, stdin=SAID if command[0] == "chat" else "")
            gc.collect()  # as the MCP server does after an analysis
        except Exception as error:
            wrong += 1
            print(f"process {number}: {' '.join(command)}: {type(error).__name__}: {str(error)[-300:]}", flush=True)
        done += 1
        first = first or (_used() if done == 2 * len(COMMANDS) else None)
    if first is None:
        print(f"process {number}: too short: {done} commands")
        return False
    last = _used()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"process {number}: {done} commands, {wrong} wrong; MiB {first[0]:.0f} → {last[0]:.0f} (most {peak:.0f}),"
        f" files {first[1]} → {last[1]}, threads {first[2]} → {last[2]}",
        flush=True,
    )
    return not wrong and last[0] <= LARGEST_GROWTH * first[0] and last[1] <= first[1] + 2


def _used() -> tuple[float, int, int]:
    """Resident memory in MiB, open files, threads."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    files = len(os.listdir("/proc/self/fd"))
    return int(status["VmRSS"].split()[0]) / 1024, files, int(status["Threads"])


if __name__ == "__main__":
    main()
