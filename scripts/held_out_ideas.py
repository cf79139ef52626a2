#!/usr/bin/env python3
"""Whether the history would have named the change that won, from records of other sources alone.

    scripts/held_out_ideas.py [RECORDS.jsonl]

Each source is hidden in turn. For each of its changes that saved 2 % or more, the families of changes are ranked from
the other sources for the same chip, model and sequence, without those that its run has or that have nothing to touch
there, as far as the record says: does the family of the change stand among three, among six? Families that exclude
each other (rowwise and tensorwise float8) are one idea, which names each with its runs, and those of the table that no
run on such a chip tried. An entry of the table may be there for the hidden source alone: the last line counts what is
named without such entries. Sources are put into two halves by the order of their names; the ranking was chosen on the
first half. Records of a file are asked of the whole history.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from asap.hardware import find_chip
from asap.history.families import family_of, ranked
from asap.history.files import load_records, read_records
from asap.history.record import HistoryRecord, Outcome
from asap.proposals.ideas import decisions, has_units, is_moot, known_of, untried
from asap.stacks.registry import by_framework

WORTH = 1.02
PLACES = (3, 6)


def source_of(record: HistoryRecord) -> str:
    """The series of experiments that a record is of."""
    return record.source.text.partition("@")[0].partition(" ")[0]


def can_have(record: HistoryRecord, family: str) -> bool:
    """Whether a family is one for the chip and the program of a record, as far as is known."""
    known, chip, program = (
        known_of(family),
        find_chip(record.hardware.chip or ""),
        by_framework(record.workload.framework),
    )
    fits = has_units(chip.chip if chip else None, known)
    fits = fits and (program is None or known.compiler != ("torch" if program.kin == "jax" else "xla"))
    fits = fits and (program is None or known.stacks is None or program.contract in known.stacks)
    return fits and not is_moot(record.before, record.workload, family)


def places_of(record: HistoryRecord, others: Sequence[HistoryRecord]) -> tuple[int | None, int | None]:
    """Place of the idea that names what won, with and without entries of the table that only its own source tried."""
    found = ranked(others, record.hardware.chip, record.model.parameters, record.workload.sequence_length)
    groups = decisions(one for one in found if can_have(record, one.name))

    def place(named: Sequence[bool]) -> int | None:
        return named.index(True) + 1 if any(named) else None

    tried = [any(one.name == family_of(record) for one in group) for group in groups]
    beside = [family_of(record) in untried(group) and can_have(record, family_of(record)) for group in groups]
    return place([first or second for first, second in zip(tried, beside, strict=True)]), place(tried)


def main() -> None:
    """Counts of both halves, and every change with its place."""
    records = [one for one in load_records() if one.kind is not None]
    asked = [(one, "of the file") for path in sys.argv[1:] for _, one in read_records(Path(path))]
    sources = sorted({source_of(one) for one in records})
    asked = asked or [(one, ("first half", "put away")[sources.index(source_of(one)) % 2]) for one in records]
    counts: dict[str, list[tuple[int | None, int | None]]] = defaultdict(list)
    for one, half in asked:
        if one.outcome is Outcome.IMPROVED and (one.speedup or 0) >= WORTH:
            found = places_of(one, [other for other in records if source_of(other) != source_of(one)])
            counts[half].append(found)
            print(f"{half}: {one.title}: {found[0] or 'not named'}")
    for half, places in counts.items():
        for which, words in enumerate(("", ", without entries of the table that no other source tried")):
            known = [place for pair in places if (place := pair[which]) is not None]
            said = ", ".join(f"among {most}: {sum(place <= most for place in known)}" for most in PLACES)
            print(f"{half}: {len(places)} changes that won{words}: {said}")


if __name__ == "__main__":
    main()
