"""Prints how many false statements pass as grounded and how many true ones are marked, by kind and half."""

import argparse
from collections import defaultdict

from asap.agents.grounding.verdict import check
from asap.answers.inquiries import Inquiries
from asap.core.errors import AsapError
from swapped_truths.statements import Statement, case_of, half_of, statements

RUNS = ("paper-v6e-16", "paper-v5p-512", "paper-v5e-256", "llama-8b-tensor-16", "llama-8b-too-large", "cpu-8dev")


def wrong_of(runs: tuple[str, ...] = RUNS, seeds: int = 3) -> list[tuple[Statement, bool]]:
    """Every statement over these runs, once, and whether it was judged wrongly."""
    found: dict[tuple[str, str], tuple[Statement, bool]] = {}
    studies = Inquiries()
    for run in runs:
        try:
            case = case_of(studies.of(run))
        except AsapError:
            continue
        for seed in range(seeds):
            for one in statements(case, seed):
                verdict = check(one.text, case.catalogue, one.about)
                passes = verdict[-1].grounded
                found[run, one.kind + one.text] = one, passes is not one.true
    return list(found.values())


def main() -> None:
    """All kinds with their counts, or the wrong ones of the first half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--wrong", action="store_true", help="print what is judged wrongly in the half that is mended on"
    )
    parser.add_argument("--half", nargs="*", default=["mended on"], help="of which halves they are printed")
    arguments = parser.parse_args()
    judged = wrong_of()
    by_kind: dict[tuple[bool, str, str], list[bool]] = defaultdict(list)
    for one, wrong in judged:
        by_kind[one.true, half_of(one.kind), one.kind].append(wrong)
        if arguments.wrong and wrong and half_of(one.kind) in arguments.half:
            print(f"{'marked' if one.true else 'passed'}: {one.kind}: {one.text}")
    for true in (False, True):
        for half in ("mended on", "put away", "fresh", "later", "new", "last", "far", "beyond", "threads"):
            of = {kind: wrong for (t, a, kind), wrong in by_kind.items() if (t, a) == (true, half)}
            total, bad = sum(map(len, of.values())), sum(map(sum, of.values()))
            print(f"{'true, marked' if true else 'false, passed'}, {half}: {bad} of {total}, {len(of)} kinds")
            if half in arguments.half:
                for kind, wrong in of.items():
                    print(f"    {kind}: {sum(wrong)} of {len(wrong)}")


if __name__ == "__main__":
    main()
