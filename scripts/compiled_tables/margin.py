"""What least effort of the compiler leaves open: HBM of full effort over that of least effort, of the same programs.

python -m compiled_tables.margin FULL.jsonl.gz LEAST.jsonl.gz asap/compiler/least_effort.json
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from asap.compiler.calibration import EffortMargin
from asap.plans import Plan


def main(full: Path, least: Path, output: Path) -> None:
    """Write the margins, with the optimizer in HBM and in host memory."""
    of_full, ratios = _needed(full), {False: list[float](), True: list[float]()}
    for key, (row, needed) in _needed(least).items():
        if key in of_full:
            ratios["optimizer" in Plan.parse(row["plan"]).offload].append(of_full[key][1] / needed)
    margins = {
        name: _margin(ratios[on_host]).model_dump()
        for name, on_host in (("optimizer_in_hbm", False), ("optimizer_on_host", True))
    }
    output.write_text(json.dumps(margins, indent=2) + "\n", encoding="utf-8")


def _needed(path: Path) -> dict[tuple[str, int], tuple[dict[str, Any], float]]:
    """Rows with their bytes, by the rule and the index that drew them."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {(row["kind"], row["index"]): (row, row["needed_bytes"]) for row in rows if "needed_bytes" in row}


def _margin(ratios: list[float]) -> EffortMargin:
    low, median, high = (round(float(one), 3) for one in np.quantile(ratios, (0.1, 0.5, 0.9)))
    source = "reference steps planned with both efforts, jax 0.10.2 and libtpu 0.0.42.1 (tests/data/compiled/README.md)"
    return EffortMargin(low=low, median=median, high=high, plans=len(ratios), source=source)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
