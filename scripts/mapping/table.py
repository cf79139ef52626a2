"""An exhaustive table of the programs of one algorithm, as ``mapping/table.py`` wrote it."""

import gzip
import json
import math
import random
import sys
from collections.abc import Mapping
from functools import cache, cached_property
from itertools import product
from pathlib import Path

from asap.compiler.algorithms.build import BENCHMARKS
from asap.compiler.mapped.judge import judged, read_choices, request_of
from asap.compiler.mapped.virtual_run import differences
from asap.compiler.toolchain.compile import compile_all
from asap.compiler.traced.predict_algorithm import AlgorithmPredictor
from asap.core.feedback import Feedback
from asap.core.units import Provenance
from asap.evidence.step_belief import Prior
from asap.hardware import Slice, resolve_hardware
from asap.mapping.algorithm import ALGORITHMS, grids, textbook_grid
from asap.mapping.check import check
from asap.mapping.language.format import format_decision
from asap.mapping.language.parse import parse
from asap.mapping.space import AlgorithmSpace, algorithm_space, orders
from asap.optimize.outcome import Configuration, Outcome
from asap.optimize.proposers.mapping_prior import mapping_prior

TABLES = Path(__file__).parents[2] / "tests" / "data" / "mapping"
MACHINE = "v5e:4x4"
ORDERS = orders((4, 4))
"""Those of the torus that the tables are for."""

_NO_ORDERS = ("f(i, j) = i * 4 + 2 * j", "f(i, j) = i + j", "block(3, 2)")
"""What looks like an order of that torus and is none."""

_SIDES = (1, 2, 4, 8, 16)
_WITH_OVERLAP = ("cannon", "pumma")
"""Algorithms of one grid. Elsewhere every transfer may overlap, so that a table takes minutes and not hours."""


def raw_space(algorithm: str) -> AlgorithmSpace:
    """Every decision free of the others: grids of any product, orders that are none."""
    sides = product(_SIDES, repeat=len(ALGORITHMS[algorithm].grid))
    return algorithm_space(algorithm, sides, (*ORDERS, *_NO_ORDERS), algorithm in _WITH_OVERLAP)


def legal_space(algorithm: str, hardware: Slice) -> list[tuple[AlgorithmSpace, dict[str, str]]]:
    """Every choice that passes the checks on a machine."""
    sides = grids(len(ALGORITHMS[algorithm].grid), hardware.devices_per_slice)
    space = algorithm_space(algorithm, sides, ORDERS, algorithm in _WITH_OVERLAP)
    return [(space, chosen) for chosen in space.choices() if not check(space.text(chosen), None, hardware).feedback]


class Table:
    """Programs of one algorithm with their outcome; what it does not hold is refused by the checks."""

    def __init__(self, name: str) -> None:
        lines = gzip.decompress((TABLES / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()
        self.made_by, *rows = (json.loads(line) for line in lines)
        self.name, self.space, self.hardware = name, raw_space(name), resolve_hardware(MACHINE).slice
        self.outcomes = {
            meaning(row["program"]): Outcome(
                status=row["status"], step_time_s=row["seconds"], provenance=Provenance.COMPILED,
                feedback=tuple(Feedback(**each) for each in row["feedback"]),
            )
            for row in rows
        }  # fmt: skip
        self.programs = [row["program"] for row in rows]
        self.best = min(each.step_time_s or math.inf for each in self.outcomes.values())
        chosen = {key: options[0] for key, options in self.space.options.items()}
        grid = textbook_grid(name, self.hardware.devices, chosen.get("exchange", "")) or ()
        self.textbook = self.space.text({**chosen, "grid": f"({', '.join(map(str, grid))})"} | _stationary(chosen))
        self._refused: dict[frozenset[str], Outcome] = {}

    def outcome(self, text: Configuration) -> Outcome:
        """What came of a program; the checks refuse what the table does not hold."""
        key = meaning(text)
        if key not in self.outcomes:
            key = meaning(self._completed(text))
        if key in self.outcomes:
            return self.outcomes[key]
        if key not in self._refused:
            found = check(text, None, self.hardware).feedback
            assert found, f"not in the table: {text}"
            self._refused[key] = Outcome(status="rejected", provenance=Provenance.COMPILED, feedback=found)
        return self._refused[key]

    def _completed(self, text: Configuration) -> Configuration:
        """The program with the grid that holds where no line says one, as after some repairs."""
        exchange = next((line.split()[1] for line in text.splitlines() if line.startswith("exchange ")), "permute")
        grid = textbook_grid(self.name, self.hardware.devices, exchange) or ()
        return text if "grid (" in text else f"{text}\ngrid ({', '.join(map(str, grid))})"

    def legal(self, text: Configuration) -> bool:
        """Whether a program passes the checks."""
        return self.outcome(text).status == "done"

    @cached_property
    def prior(self) -> Prior:
        """What is predicted of every program; the table is not looked at for it."""
        options = (decisions(self.space, text) for text in self.programs)
        return mapping_prior(self.space, options, AlgorithmPredictor(self.hardware).seconds)


def _stationary(chosen: Mapping[str, str]) -> dict[str, str]:
    return {"stationary": "C"} if "stationary" in chosen else {}


def decisions(space: AlgorithmSpace, text: Configuration) -> dict[str, str]:
    """What a program of a space says for each of its decisions."""
    said = {
        line.rsplit(" ", 1)[0] if line.startswith("layout") else line.split(" ", 1)[0]: line
        for line in text.splitlines()
    }
    return {key: said[key].removeprefix(f"{key} ") for key in space.options}


@cache
def meaning(text: Configuration) -> frozenset[str]:
    """The decisions of a program, whatever their order and spacing."""
    return frozenset(format_decision(decision) for decision in parse(text)[0].decisions)


def main(names: list[str]) -> None:
    hardware = resolve_hardware(MACHINE).slice
    TABLES.mkdir(exist_ok=True)
    for name in names or BENCHMARKS:
        write_table(name, hardware)


def write_table(name: str, hardware: Slice) -> None:
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
