"""Writes the tables of the nine algorithms on v5e:4x4: every legal program, with its modelled time and feedback.

    cd scripts; nice ../.venv/bin/python -m mapping.write_tables [ALGORITHM …]

The compiler writes one schedule for all orders of devices on a torus of this size, so each choice is compiled once, in
the order of rows. What was compiled is kept in $ASAP_HOME; alone on two cores all take about twenty minutes.
"""

import gzip
import json
import random
import sys

from asap.compiler.algorithms.build import BENCHMARKS
from asap.compiler.mapped.judge import judged, read_choices, request_of
from asap.compiler.mapped.virtual_run import differences
from asap.compiler.toolchain.compile import compile_all
from asap.hardware import Slice, resolve_hardware
from mapping.table import MACHINE, ORDERS, TABLES, legal_space


def main(names: list[str]) -> None:
    hardware = resolve_hardware(MACHINE).slice
    TABLES.mkdir(exist_ok=True)
    for name in names or BENCHMARKS:
        write(name, hardware)


def write(name: str, hardware: Slice) -> None:
    """The table of one algorithm: a line on what made it, then one for each program."""
    problem, draw = BENCHMARKS[name].problem, random.Random(0)
    legal = [(space, chosen) for space, chosen in legal_space(name, hardware) if chosen["order"] == ORDERS[0]]
    texts = [space.text(chosen) for space, chosen in legal]
    outcomes = compile_all([request_of(text, hardware, problem) for text in texts], progress=print)
    at_random = [space.text({**chosen, "order": draw.choice(ORDERS)}) for space, chosen in legal]
    wrong = differences(at_random, hardware.topology or ())
    assert not any(each.pattern for each in wrong), [t for t, w in zip(at_random, wrong, strict=True) if w.pattern]
    rows = []
    for (space, chosen), outcome in zip(legal, outcomes, strict=True):
        for order in ORDERS:
            text = space.text({**chosen, "order": order})
            found = judged(text, read_choices(text, hardware), outcome, hardware)
            feedback = [each.model_dump(exclude_defaults=True) for each in found.feedback]
            rows.append({"program": text, "status": found.status, "seconds": found.seconds, "feedback": feedback})
    made_by = {
        "algorithm": name, "machine": MACHINE, "problem": problem, "compiled": len(outcomes),
        "compile_seconds": round(sum(outcome.seconds for outcome in outcomes)), **outcomes[0].versions,
    }  # fmt: skip
    lines = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in (made_by, *rows))
    (TABLES / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    print(made_by)


if __name__ == "__main__":
    main(sys.argv[1:])
