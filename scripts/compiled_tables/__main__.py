"""Append to a table of compilations: one JSON line for each drawn configuration that the table has no line of.

    python -m compiled_tables TABLE.jsonl --count 400 --minutes 60

Stopped and started again, it goes on where it was.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import groupby
from pathlib import Path
from typing import Any

from asap.compiler.programs.flags import compiler_flags
from asap.compiler.programs.request import CompileRequest, make_request
from asap.compiler.toolchain.versions import compiler_versions
from compiled_tables.draw import Drawn, draw
from compiled_tables.hbm import configure, plan_memory

SEED = 18
BLOCK = 48
"""Configurations among which those of the same flags follow one another: libtpu reads its flags once a process."""


def main() -> None:
    """Draw, compile, append."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--count", type=int, default=400, help="configurations to draw")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no compilation after so many")
    options = parser.parse_args()
    lines = options.table.read_text(encoding="utf-8").splitlines() if options.table.exists() else []
    known, end = {json.loads(line)["index"] for line in lines}, time.monotonic() + 60 * options.minutes
    versions = compiler_versions()
    for start in range(0, options.count, BLOCK):
        block = [index for index in range(start, min(start + BLOCK, options.count)) if index not in known]
        for index, found, planned in _planned(block):
            row = {"index": index, **_asked(found), **planned, "versions": versions}
            with options.table.open("a", encoding="utf-8") as table:
                table.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
            if time.monotonic() > end:
                return


def _planned(block: Sequence[int]) -> Iterator[tuple[int, Drawn, dict[str, Any]]]:
    """Each configuration of a block with the compiler's answer; a child process for each set of flags."""
    drawn = {index: draw(SEED, index) for index in block}
    requests = {index: _request(found) for index, found in drawn.items()}
    for flags, group in groupby(sorted(block, key=lambda index: requests[index].flags), lambda i: requests[i].flags):
        pool = _pool(flags)
        for index in group:
            begin = time.monotonic()
            try:
                answer = pool.submit(plan_memory, requests[index]).result()
            except BrokenProcessPool:
                answer, pool = {"message": "the compiler crashed"}, _pool(flags)
            yield index, drawn[index], {**answer, "seconds": round(time.monotonic() - begin, 1)}
        pool.shutdown()


def _pool(flags: Sequence[str]) -> ProcessPoolExecutor:
    """One child process whose compiler has these flags."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=configure, initargs=(flags,))


def _request(found: Drawn) -> CompileRequest:
    flags = compiler_flags(found.hardware.chip.name, {}, found.plan)
    return make_request(found.hardware, found.plan, found.model, found.workload, flags=flags, effort="least")


def _asked(found: Drawn) -> dict[str, Any]:
    work = found.workload
    return {
        "model": found.model.name, "hardware": found.hardware_name, "plan": str(found.plan),
        "global_batch": work.global_batch, "sequence_length": work.sequence_length,
    }  # fmt: skip


if __name__ == "__main__":
    main()
