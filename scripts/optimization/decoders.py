"""Truth for benchmarks: decoders compiled or measured under every configuration of a space.

    nice python -m optimization.decoders [dense] [moe] [moe16]
    python -m optimization.decoders measure [again]

Compiled are all meshes of three axes, with and without rematerialisation, at full effort, one at a time, those of one
number of microbatches after the other. Each answer is appended to a table as it comes; a second call compiles what is
missing. Measured, on eight virtual CPU devices, are all meshes of the axes that change no code, with rematerialisation
none and full; the median of the steps counts. That decoder is larger than the one of decoder.yml, so that meshes differ
by more than noise; ``again`` measures every fourth configuration a second time, which says how much noise there is.
"""

import gzip
import json
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice, product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from asap.compiler.programs.options import CompileLimits, CompileOptions
from asap.compiler.verify import verify
from asap.experiments import Experiment
from asap.experiments.create import Statement, create_experiment
from asap.optimize.evaluators.compiler import outcome_of
from asap.optimize.outcome import Outcome
from asap.plans import Plan, Remat
from asap.plans.enumeration import enumerate_plans, factorisations, mesh_of
from asap.study.study import study_of

ROOM = Path(__file__).parents[2] / "tests" / "data" / "search"


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


def main(words: list[str]) -> None:
    if words[:1] == ["measure"]:
        measure(again=words[1:] == ["again"])
    else:
        compile_all(words)


def compile_all(names: list[str]) -> None:
    """Compile what the tables of these decoders miss."""
    for name in names or DECODERS:
        of, done = decoder(name), compiled(name)
        plans = [plan for plan in configurations(name) if str(plan) not in done]
        for number, plan in enumerate(plans, 1):
            began = time.monotonic()
            found = verify(of, [plan], PATIENT)[0]
            outcome = outcome_of(found, time.monotonic() - began)
            row = {"configuration": str(plan), "outcome": outcome.model_dump(mode="json", exclude_none=True)}
            if not path(name).exists():
                _append_row(name, {"made_by": "decoders.py", "machine": DECODERS[name].machine, **found.versions})
            _append_row(name, row)
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


def _append_row(name: str, row: dict[str, Any]) -> None:
    with path(name).open("ab") as stream:
        stream.write(gzip.compress(f"{json.dumps(row)}\n".encode(), mtime=0))


TABLE = ROOM / "decoder_runs.json"
OVERRIDES = [
    "base_emb_dim=128",
    "base_mlp_dim=512",
    "head_dim=16",
    "base_num_decoder_layers=4",
    "max_target_length=128",
    "vocab_size=1024",
]
SETTINGS = ("remat=none microbatches=1", "remat=full microbatches=1")
STEPS, WARM_UP = 10, 2
EVERY = 4


def measure(again: bool) -> None:
    """Measure the small decoder, or every fourth configuration of it once more."""
    meshes = factorisations(8, ("replica", "data", "seq", "model"))
    plans = [Plan.parse(f"{mesh_of(row)} {said}") for row, said in product(meshes, SETTINGS)]
    if again:
        table = json.loads(TABLE.read_text(encoding="utf-8"))
        table["median_step_s_again"] = _measured(plans[1::EVERY])
    else:
        table = _machine() | {"median_step_s": _measured(plans)}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _measured(plans: Iterable[Plan]) -> dict[str, float]:
    from optimization.train_on_cpu import experiment, timed_steps

    of, found = experiment(OVERRIDES), dict[str, float]()
    for plan in plans:
        taken = [seconds for seconds, _ in islice(timed_steps(of, plan), STEPS)][WARM_UP:]
        found[str(plan)] = round(median(taken), 4)
        print(f"{plan}: {found[str(plan)]:.3f} s", file=sys.stderr, flush=True)
    return found


def _machine() -> dict[str, Any]:
    import jax

    return {
        "made_by": "scripts/optimization/decoders.py",
        "machine": f"{platform.machine()}, eight virtual CPU devices on two cores",
        "jax": jax.__version__,
        "steps": STEPS - WARM_UP,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
