"""Decisions that a program makes once: two lines have to agree."""

from collections.abc import Iterator

from asap.mapping.language.feedback import Code, Feedback, delete_line, feedback
from asap.mapping.language.program import Decision, Mesh, Order, Program, Setting


def check_once(program: Program) -> Iterator[Feedback]:
    """Two lines that decide the same thing differently."""
    first: dict[str, Decision] = {}
    for decision in program.decisions:
        subject = _subject(decision)
        earlier = first.setdefault(subject, decision) if subject else decision
        if earlier != decision:
            found = f"{subject} is decided on line {earlier.at.line}, and differently here"
            yield feedback(
                Code.CONTRADICTION, decision.at, found, "remove one of them", other=earlier.at,
                repair=delete_line(decision.at.line),
            )  # fmt: skip


def _subject(decision: Decision) -> str | None:
    if isinstance(decision, Setting):
        return decision.keyword
    return {Mesh: "mesh", Order: "order"}.get(type(decision))
