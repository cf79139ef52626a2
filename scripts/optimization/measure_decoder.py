"""Measures the small decoder on eight virtual CPU devices under forty configurations, as truth for a benchmark.

    python scripts/optimization/measure_decoder.py

All meshes of the axes that change no code, with rematerialisation none and full. The median
of the steps counts.
"""

import json
import platform
import sys
from itertools import islice, product
from pathlib import Path
from statistics import median

from asap.plans import Plan
from asap.plans.enumeration import factorisations, mesh_of
from optimization.train_on_cpu import experiment, timed_steps

TABLE = Path(__file__).with_name("decoder_runs.json")
SETTINGS = ("remat=none microbatches=1", "remat=full microbatches=1")
STEPS, WARM_UP = 12, 2


def main() -> None:
    of = experiment([])
    meshes = factorisations(8, ("replica", "data", "seq", "model"))
    plans = [Plan.parse(f"{mesh_of(row)} {said}") for row, said in product(meshes, SETTINGS)]
    times: dict[str, list[float]] = {}
    for plan in plans:
        times[str(plan)] = [seconds for seconds, _ in islice(timed_steps(of, plan), STEPS)][WARM_UP:]
        print(f"{plan}: {median(times[str(plan)]):.3f} s", file=sys.stderr, flush=True)
    TABLE.write_text(json.dumps(_document(times), indent=1) + "\n", encoding="utf-8")


def _document(times: dict[str, list[float]]) -> dict[str, object]:
    import jax

    return {
        "made_by": "scripts/optimization/measure_decoder.py",
        "machine": f"{platform.machine()}, eight virtual CPU devices, beside other work",
        "jax": jax.__version__,
        "steps": STEPS - WARM_UP,
        "median_step_s": {plan: round(median(taken), 4) for plan, taken in times.items()},
    }


if __name__ == "__main__":
    main()
