"""Compiles small decoders under every configuration of a space, as truth for a benchmark.

    nice python scripts/optimization/compile_decoders.py [dense] [moe] [moe16]

All meshes of three axes, with and without rematerialisation, at full effort, one at a time, those of one number of
microbatches after the other. Each answer is appended to a table as it comes; a second call compiles what is missing.
"""

import gzip
import json
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from asap.compiler.programs.options import CompileLimits, CompileOptions
from asap.compiler.verify import verify
from asap.experiments import Experiment
from asap.experiments.create import Statement, create_experiment
from asap.optimize.evaluators.compiler import outcome_of
from asap.optimize.outcome import Outcome
from asap.plans import Plan, Remat
from asap.plans.enumeration import enumerate_plans
from asap.study.study import study_of

ROOM = Path(__file__).parent


class Space(NamedTuple):
    """The slice that a decoder is compiled for, the axes of its meshes, and its numbers of microbatches."""

    machine: str
    axes: tuple[str, ...]
    microbatches: tuple[int, ...]


DECODERS = {
    "dense": Space("v5e:4x4", ("data", "seq", "model"), (1, 2)),
    "moe": Space("v5e:4x4", ("data", "model", "expert"), (1, 2, 4)),
    "moe16": Space("v5e:2x4", ("data", "model", "expert"), (1,)),
}
REMATS = (Remat.FULL, Remat.NONE)
PATIENT = CompileOptions(limits=CompileLimits(seconds=7200.0))
"""Full effort in any case: a compilation that takes too long would be tried again with less."""


def main(names: list[str]) -> None:
    for name in names or DECODERS:
        of, done = decoder(name), compiled(name)
        plans = [plan for plan in configurations(name) if str(plan) not in done]
        for number, plan in enumerate(plans, 1):
            began = time.monotonic()
            found = verify(of, [plan], PATIENT)[0]
            outcome = outcome_of(found, time.monotonic() - began)
            row = {"configuration": str(plan), "outcome": outcome.model_dump(mode="json", exclude_none=True)}
            if not path(name).exists():
                _append(name, {"made_by": "compile_decoders.py", "machine": DECODERS[name].machine, **found.versions})
            _append(name, row)
            print(f"{name} {number} of {len(plans)}: {plan}: {outcome.status}, {found.compile_s:.0f} s", flush=True)


def decoder(name: str) -> Experiment:
    """The run as it is configured, all data parallel."""
    return create_experiment(name, Statement(hardware=DECODERS[name].machine), config=ROOM / f"{name}.yml")


def configurations(name: str) -> Iterator[Plan]:
    """Every legal configuration of the space."""
    study = study_of(decoder(name))
    assert study.plan is not None
    space = DECODERS[name]
    for count, remat in product(space.microbatches, REMATS):
        like = study.plan.model_copy(update={"remat": remat, "microbatches": count})
        yield from enumerate_plans(study.constraints, space.axes, like)


def compiled(name: str) -> dict[str, Outcome]:
    """What has been compiled so far."""
    if not path(name).exists():
        return {}
    _, *rows = map(json.loads, gzip.decompress(path(name).read_bytes()).decode().splitlines())
    return {row["configuration"]: Outcome.model_validate(row["outcome"]) for row in rows}


def path(name: str) -> Path:
    """Of a table: a line on what made it, then one for each configuration."""
    return ROOM / f"{name}_compiled.jsonl.gz"


def _append(name: str, row: dict[str, Any]) -> None:
    with path(name).open("ab") as stream:
        stream.write(gzip.compress(f"{json.dumps(row)}\n".encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
