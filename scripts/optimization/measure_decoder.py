"""Measures the small decoder on eight virtual CPU devices under forty configurations, as truth for a benchmark.

    python scripts/optimization/measure_decoder.py [again]

All meshes of the axes that change no code, with rematerialisation none and full. The median of the steps counts. The
decoder is larger than the one of decoder.yml, so that meshes differ by more than noise; ``again`` measures every fourth
configuration a second time, which says how much noise there is.
"""

import json
import platform
import sys
from collections.abc import Iterable
from itertools import islice, product
from pathlib import Path
from statistics import median
from typing import Any

from asap.plans import Plan
from asap.plans.enumeration import factorisations, mesh_of
from optimization.train_on_cpu import experiment, timed_steps

TABLE = Path(__file__).with_name("decoder_runs.json")
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


def main(words: list[str]) -> None:
    meshes = factorisations(8, ("replica", "data", "seq", "model"))
    plans = [Plan.parse(f"{mesh_of(row)} {said}") for row, said in product(meshes, SETTINGS)]
    if words == ["again"]:
        table = json.loads(TABLE.read_text(encoding="utf-8"))
        table["median_step_s_again"] = _measured(plans[1::EVERY])
    else:
        table = _machine() | {"median_step_s": _measured(plans)}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _measured(plans: Iterable[Plan]) -> dict[str, float]:
    of, found = experiment(OVERRIDES), dict[str, float]()
    for plan in plans:
        taken = [seconds for seconds, _ in islice(timed_steps(of, plan), STEPS)][WARM_UP:]
        found[str(plan)] = round(median(taken), 4)
        print(f"{plan}: {found[str(plan)]:.3f} s", file=sys.stderr, flush=True)
    return found


def _machine() -> dict[str, Any]:
    import jax

    return {
        "made_by": "scripts/optimization/measure_decoder.py",
        "machine": f"{platform.machine()}, eight virtual CPU devices on two cores",
        "jax": jax.__version__,
        "steps": STEPS - WARM_UP,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
