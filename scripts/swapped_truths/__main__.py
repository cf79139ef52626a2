"""Prints how many false statements pass and how many true ones are marked, by what was exchanged, kind and style."""

import argparse
from collections import defaultdict
from dataclasses import dataclass

from asap.agents.grounding.verdict import check
from asap.answers.inquiries import Inquiries
from asap.core.errors import AsapError
from swapped_truths.statements import Statement, case_of, exchanged, half_of, statements

RUNS = ("paper-v6e-16", "paper-v5p-512", "paper-v5e-256", "cpu-8dev")
STYLES = ("mended on", "put away", "fresh", "later", "new", "last", "far", "beyond", "threads")


@dataclass(frozen=True)
class Judged:
    """A statement as it is shown.

    Args:
        statement: with what it says.
        wrong: whether it is true and marked, or false and not.
        told: whether a bracket behind a figure says that nobody measured it.
    """

    statement: Statement
    wrong: bool
    told: bool


def judged(runs: tuple[str, ...] = RUNS, seeds: int = 3) -> list[Judged]:
    """Every statement over the runs of these that have a profile, once."""
    found: dict[tuple[str, str], Judged] = {}
    studies = Inquiries()
    for run in runs:
        try:
            case = case_of(studies.of(run))
        except AsapError:
            continue
        for seed in range(seeds):
            for one in statements(case, seed):
                shown = check(one.text, case.catalogue, one.about)[-1]
                told = "not measured]" in shown.text
                found[run, one.kind + one.text] = Judged(one, shown.grounded is not one.true, told)
    return list(found.values())


def main() -> None:
    """All kinds with their counts, or the wrong ones of some styles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="print what is judged wrongly in these styles")
    parser.add_argument("--half", nargs="*", default=["mended on"], help="of which styles kinds are printed")
    arguments = parser.parse_args()
    rows: dict[tuple[str, str], dict[str, list[Judged]]] = defaultdict(lambda: defaultdict(list))
    for one in judged():
        kind, half = one.statement.kind, half_of(one.statement.kind)
        what = "true, marked" if one.statement.true else f"false by its {exchanged(kind)}, not marked"
        rows[what, half][kind].append(one)
        if arguments.wrong and one.wrong and half in arguments.half:
            print(f"{what}: {kind}: {one.statement.text}")
    for what in sorted({what for what, _ in rows}):
        every = [one for (of, _), kinds in rows.items() if of == what for each in kinds.values() for one in each]
        print(_line(what, "all styles", every))
        for half in STYLES:
            kinds = rows.get((what, half), {})
            print("  " + _line(what, half, [one for each in kinds.values() for one in each]))
            if half in arguments.half:
                for kind, each in kinds.items():
                    print("    " + _line(kind, half, each))


def _line(what: str, half: str, of: list[Judged]) -> str:
    wrong = [one for one in of if one.wrong]
    told = sum(one.told for one in wrong if not one.statement.true)
    return f"{what}, {half}: {len(wrong)} of {len(of)}" + (
        f", {told} with “not measured” behind a figure" if told else ""
    )


if __name__ == "__main__":
    main()
