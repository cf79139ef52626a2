"""Append to a table of compilations: one JSON line for each drawn configuration that the table has no line of.

    python -m compiled_tables TABLE.jsonl --kind pipeline --count 50 --minutes 60

Stopped and started again, it goes on where it was.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from asap.compiler.programs.options import compiler_flags
from asap.compiler.programs.request import EFFORTS, CompileRequest, Effort, make_request
from asap.compiler.toolchain.versions import compiler_versions
from compiled_tables.children import memory_plan
from compiled_tables.draw import KINDS, SEED, Drawn, draw


def main() -> None:
    """Draw, compile, append."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="alike", help="which part of the table")
    parser.add_argument("--count", type=int, default=400, help="configurations to draw")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no compilation after so many")
    parser.add_argument("--effort", choices=EFFORTS, default="full", help="of the compiler")
    options = parser.parse_args()
    lines = options.table.read_text(encoding="utf-8").splitlines() if options.table.exists() else []
    rows = [json.loads(line) for line in lines]
    known = {row["index"] for row in rows if row["kind"] == options.kind}
    end = time.monotonic() + 60 * options.minutes
    versions = compiler_versions()
    for index in range(options.count):
        if index in known:
            continue
        drawn = draw(options.kind, SEED, index)
        planned = memory_plan(_request(drawn, options.effort))
        row = {"kind": options.kind, "index": index, **_asked(drawn), **planned, "versions": versions}
        with options.table.open("a", encoding="utf-8") as table:
            table.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
        if time.monotonic() > end:
            return


def _request(found: Drawn, effort: Effort) -> CompileRequest:
    flags = compiler_flags(found.hardware.chip.name, {}, found.plan)
    return make_request(found.hardware, found.plan, found.model, found.workload, flags=flags, effort=effort)


def _asked(found: Drawn) -> dict[str, Any]:
    work = found.workload
    return {
        "model": found.model.name, "hardware": found.hardware_name, "plan": str(found.plan),
        "global_batch": work.global_batch, "sequence_length": work.sequence_length,
    }  # fmt: skip


if __name__ == "__main__":
    main()
