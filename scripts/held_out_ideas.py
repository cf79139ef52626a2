#!/usr/bin/env python3
"""Whether the history would have named the change that won, from records of other sources alone.

    scripts/held_out_ideas.py

Each source is hidden in turn. For each of its changes that saved 2 % or more, the families of changes are ranked from
the other sources for the same chip, model and sequence, without those that its run has or that have nothing to touch
there, as far as the record says: does the family of the change stand among three, among six? Families that exclude
each other (rowwise and tensorwise float8) are one idea, which names each with its runs.
Sources are put into two halves by the order of their names; constants of the ranking are chosen on the first half.
"""

from collections import defaultdict

from asap.history.families import family_of, ranked
from asap.history.files import load_records
from asap.history.record import HistoryRecord, Outcome
from asap.proposals.ideas import decisions, is_moot

WORTH = 1.02
PLACES = (3, 6)


def source_of(record: HistoryRecord) -> str:
    """The series of experiments that a record is of."""
    return record.source.text.partition("@")[0].partition(" ")[0]


def main() -> None:
    """Counts of both halves, and every change with its place."""
    records = [one for one in load_records() if one.kind is not None]
    sources = sorted({source_of(one) for one in records})
    counts: dict[str, list[int | None]] = defaultdict(list)
    for number, source in enumerate(sources):
        half = "first half" if number % 2 == 0 else "put away"
        others = [one for one in records if source_of(one) != source]
        for one in records:
            if source_of(one) != source or one.outcome is not Outcome.IMPROVED or (one.speedup or 0) < WORTH:
                continue
            chip, sequence = one.hardware.chip, one.workload.sequence_length
            found = ranked(others, chip, one.model.parameters, sequence)
            groups = decisions(each for each in found if not is_moot(one.before, one.workload, each.name))
            named = [any(each.name == family_of(one) for each in group) for group in groups]
            place = named.index(True) + 1 if any(named) else None
            counts[half].append(place)
            print(f"{half}: {one.title}: {place or 'in no other source'}")
    for half, places in counts.items():
        known = [place for place in places if place is not None]
        said = ", ".join(f"among {most}: {sum(place <= most for place in known)}" for most in PLACES)
        print(f"{half}: {len(places)} changes that won, {len(known)} of a family in another source; {said}")


if __name__ == "__main__":
    main()
