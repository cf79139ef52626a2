"""True statements made of real answers, and false ones: each a true one in which one thing was exchanged.

Kinds are put into two halves by the order of their names, before anything runs: the checks are mended on the first
half alone.
"""

# ruff: noqa: E501

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from asap.agents.grounding.catalogue import Catalogue
from asap.answers.inquiry import Inquiry
from asap.answers.plan_queries import CandidatesAnswer
from asap.answers.plan_row import PlanRow
from asap.answers.registry import ask
from asap.reports.phrases import written


@dataclass(frozen=True)
class Statement:
    """One statement, whether it is true, and its kind."""

    kind: str
    text: str
    true: bool
    about: str | None = None


@dataclass(frozen=True)
class Case:
    """What statements of one run are made of."""

    now: PlanRow
    rows: tuple[PlanRow, ...]
    catalogue: Catalogue
    operations: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    counts: dict[str, int]
    finding: str


Make = Callable[[Case, random.Random], Iterator[str]]


def case_of(inquiry: Inquiry) -> Case:
    """What the engine says of a run."""
    catalogue, answers = Catalogue(), {}
    for name in ("run", "health", "bottleneck", "operations", "candidates"):
        answers[name] = ask(inquiry, name, **({"limit": 24} if name == "candidates" else {}))
        catalogue.record(name, answers[name])
    found = answers["candidates"]
    assert isinstance(found, CandidatesAnswer)
    assert found.now is not None
    run = answers["run"]
    named = [(one.name, one.share) for one in answers["operations"].operations if one.share and len(one.name) > 3]
    counts = {"devices": run.devices, "sequences": run.global_batch}
    return Case(
        now=found.now,
        rows=tuple(row for row in found.candidates if row.step_time and row.vs_now),
        catalogue=catalogue,
        operations=tuple((name, written(share, brief=True)) for name, share in named),
        facts=tuple((one.fact, written(one.figure)) for one in answers["health"].kpis if one.figure),
        counts={noun: count for noun, count in counts.items() if count and count > 3},
        finding=answers["bottleneck"].statement,
    )


def statements(case: Case, seed: int) -> Iterator[Statement]:
    """All statements of a run, one of each kind for each plan."""
    from swapped_truths import fresh

    tables = (
        TRUE
        | fresh.FRESH_TRUE
        | fresh.LATER_TRUE
        | fresh.NEW_TRUE
        | fresh.LAST_TRUE
        | fresh.FAR_TRUE
        | fresh.BEYOND_TRUE
        | fresh.THREADS_TRUE,
        FALSE
        | fresh.FRESH_FALSE
        | fresh.LATER_FALSE
        | fresh.NEW_FALSE
        | fresh.LAST_FALSE
        | fresh.FAR_FALSE
        | fresh.BEYOND_FALSE
        | fresh.THREADS_FALSE,
    )
    for true, table in zip((True, False), tables, strict=True):
        for kind, make in table.items():
            picks = random.Random(f"{kind}{seed}")
            for text in make(case, picks):
                yield Statement(kind, text, true)


def half_of(kind: str) -> str:
    """Which half a kind is of: mended on, put away (opened since), fresh, later, new, last, far (all opened since), beyond, or threads."""
    if kind.startswith(("fresh", "later", "new", "last", "far", "beyond", "threads")):
        return kind.partition(":")[0]
    names = sorted({*TRUE, *FALSE})
    return "put away" if names.index(kind) % 2 == 1 else "mended on"


def step(row: PlanRow) -> str:
    """The printed step time."""
    return written(row.step_time).partition(" (")[0]


def gain(row: PlanRow) -> str:
    """The printed change, without its sign."""
    return written(row.vs_now).partition(" (")[0].lstrip("+-")


def way(row: PlanRow, less: str, more: str) -> str:
    """One word for less time than now, another for more."""
    assert row.vs_now is not None
    return less if row.vs_now.value < 0 else more


def ref(row: PlanRow, name: str) -> str:
    """A reference to a figure of a plan."""
    return f"{{{row.name or row.plan.replace(' ', ',')}.{name}}}"


def other(case: Case, row: PlanRow, picks: random.Random) -> PlanRow:
    """Another plan whose figures read otherwise."""
    differ = [one for one in case.rows if step(one) != step(row) and gain(one) != gain(row)]
    return picks.choice(differ or [case.now])


def each(form: Callable[[PlanRow], str]) -> Make:
    """One statement for each plan."""
    return lambda case, picks: (form(row) for row in case.rows)


def two(form: Callable[[PlanRow, PlanRow], str]) -> Make:
    """One statement for each plan beside another."""
    return lambda case, picks: (form(row, other(case, row, picks)) for row in case.rows)


def off(text: str, picks: random.Random) -> str:
    """A printed figure with one of its digits changed."""
    number, _, unit = text.partition(" ")
    at = next(place for place, sign in enumerate(number) if sign in "123456789")
    digit = str((int(number[at]) + picks.randint(2, 7)) % 9 + 1)
    changed = number[:at] + (digit if digit != number[at] else str(int(digit) % 9 + 1)) + number[at + 1 :]
    return f"{changed} {unit}"


def _ranked(case: Case) -> list[PlanRow]:
    return [row for row in case.rows if row.name.isdigit()]


TRUE: dict[str, Make] = {
    "step by reference": each(lambda r: f"With {r.plan} a step takes {ref(r, 'step_time')}."),
    "step as printed": each(lambda r: f"{r.plan} takes {step(r)} a step."),
    "step predicted": each(lambda r: f"{r.plan} is predicted to need {ref(r, 'step_time')} for each step."),
    "change by reference": each(lambda r: f"{r.plan} is {way(r, 'faster', 'slower')} than what runs now: {ref(r, 'vs_now')}."),
    "change as printed": each(lambda r: f"I expect {gain(r)} {way(r, 'less', 'more')} time with {r.plan}."),
    "interval as printed": each(
        lambda r: f"{r.plan}: between {written(r.step_time).partition(' (')[2].rstrip(')').replace(' to ', ' and ')}."
    ),
    "odds": each(lambda r: f"The odds that {r.plan} is faster are {ref(r, 'faster_odds')}, given {ref(r, 'vs_now')}."
                  if r.vs_now and r.vs_now.value < 0 else f"{r.plan} takes {step(r)}."),
    "two plans in a sentence": two(lambda r, o: f"{r.plan} takes {step(r)}, {o.plan} {step(o)}."),
    "two plans, plan after figure": two(lambda r, o: f"A step takes {ref(r, 'step_time')} with {r.plan} but {ref(o, 'step_time')} with {o.plan}."),
    "against now": lambda c, p: (f"Against {step(c.now)} now, {r.plan} takes {step(r)}." for r in c.rows),
    "difference computed": lambda c, p: (
        f"{r.plan} {way(r, 'saves', 'costs')} {{now.step_time - {ref(r, 'step_time')[1:-1]}}} a step." for r in c.rows
    ),
    "rank": lambda c, p: (f"Proposal {r.name} needs {step(r)}; its change is {ref(r, 'vs_now')}." for r in _ranked(c)),
    "pronoun": each(lambda r: f"I would try {r.plan}. It takes {step(r)}."),
    "other plan refused before": two(lambda r, o: f"I would not take {o.plan} first. For {r.plan} the step is {step(r)}."),
    "operation": lambda c, p: (f"{name} takes {share} of the step." for name, share in c.operations),
    "fact": lambda c, p: (f"The {fact} is {figure}." for fact, figure in c.facts),
    "measured now": lambda c, p: (f"What runs now was measured at {{now.measured_step_time}}{end}" for end in ".!;"[:3]
                                  if "now.measured_step_time" in c.catalogue.figures),
    "count": lambda c, p: (f"It runs on {count} {noun}." if noun == "devices" else f"A step has {count} {noun}."
                           for noun, count in c.counts.items()),
    "finding repeated": lambda c, p: iter([c.finding]),
    "setting": lambda c, p: (f"{term} is already in use." for term in c.now.plan.split()),
    "not faster": each(lambda r: f"{r.plan} is not {way(r, 'slower', 'faster')}: {ref(r, 'vs_now')}."),
    "memory": lambda c, p: (f"{r.plan} {'fits' if (r.fits_odds and r.fits_odds.value >= 0.7) else 'does not fit'}: "
                            f"{ref(r, 'hbm')} at odds of {ref(r, 'fits_odds')}." for r in c.rows if r.hbm and r.fits_odds),
}  # fmt: skip
"""True statements, in the words of several writers."""

FALSE: dict[str, Make] = {
    "figure of another plan by reference": two(lambda r, o: f"With {r.plan} a step takes {ref(o, 'step_time')}."),
    "figure of another plan as printed": two(lambda r, o: f"{r.plan} takes {step(o)} a step."),
    "change of another plan": two(lambda r, o: f"With {r.plan} it is {gain(o)} {way(o, 'less', 'more')} time."),
    "figure of now": lambda c, p: (f"{r.plan} takes {step(c.now)}." for r in c.rows if step(r) != step(c.now)),
    "two plans exchanged by reference": two(lambda r, o: f"{r.plan} takes {ref(o, 'step_time')} and {o.plan} takes {ref(r, 'step_time')}."),
    "two plans exchanged as printed": two(lambda r, o: f"A step is {step(o)} with {r.plan}, {step(r)} with {o.plan}."),
    "rank exchanged": lambda c, p: (f"Proposal {r.name} needs {ref(other(c, r, p), 'step_time')}." for r in _ranked(c)),
    "after a pronoun": two(lambda r, o: f"I would run {r.plan}. It takes {step(o)}."),
    "digit changed": lambda c, p: (f"{r.plan} takes {off(step(r), p)}." for r in c.rows),
    "digit of a change changed": lambda c, p: (f"{r.plan} changes the step by {off(gain(r), p)}." for r in c.rows),
    "unit changed": each(lambda r: f"{r.plan} takes {step(r).split()[0]} {'ms' if step(r).endswith(' s') else 's'}."),
    "end of interval as expectation": each(lambda r: f"{r.plan} takes {written(r.step_time).partition('(')[2].partition(' to ')[0]}."),
    "prediction called measured": each(lambda r: f"{r.plan} was measured at {ref(r, 'step_time')}."),
    "prediction called benchmarked": each(lambda r: f"We benchmarked {r.plan}: {step(r)} a step."),
    "prediction called proven": each(lambda r: f"It is proven that {r.plan} takes {ref(r, 'step_time')}."),
    "prediction called compiled": each(lambda r: f"Compiled, {r.plan} takes {ref(r, 'step_time')}."),
    "measurement called predicted": lambda c, p: (
        f"{word} {{now.measured_step_time}} is the predicted step of what runs now." for word in ("The", "So", "Here,")
        if "now.measured_step_time" in c.catalogue.figures
    ),
    "direction turned by reference": each(lambda r: f"{r.plan} is {way(r, 'slower', 'faster')}: {ref(r, 'vs_now')}."),
    "direction turned as printed": each(lambda r: f"{r.plan} takes {gain(r)} {way(r, 'longer', 'less')} than now."),
    "direction turned beside now": lambda c, p: (
        f"At {step(r)} {r.plan} is {way(r, 'slower', 'faster')} than the {step(c.now)} of now." for r in c.rows
        if step(r) != step(c.now)
    ),
    "direction between plans turned": two(
        lambda r, o: f"{r.plan} ({ref(r, 'step_time')}) is "
        f"{'slower' if r.step_time and o.step_time and r.step_time.value < o.step_time.value else 'faster'} "
        f"than {o.plan} ({ref(o, 'step_time')})."
    ),
    "negation turned": each(lambda r: f"{r.plan} is not {way(r, 'faster', 'slower')}: {ref(r, 'vs_now')}."),
    "saved half": each(lambda r: f"You will save half of the step with {r.plan}, which takes {ref(r, 'step_time')}."),
    "number in words": each(lambda r: f"{r.plan} takes {ref(r, 'step_time')}, ninety percent of it compute."),
    "difference of another plan": lambda c, p: (
        f"{r.plan} saves {{now.step_time - {ref(other(c, r, p), 'step_time')[1:-1]}}} a step." for r in c.rows
    ),
    "difference made up": lambda c, p: (f"{r.plan} saves {off(step(c.now), p)} a step." for r in c.rows),
    "fit turned": lambda c, p: (f"{r.plan} {'does not fit' if (r.fits_odds and r.fits_odds.value >= 0.7) else 'fits'}: "
                                f"{ref(r, 'hbm')}." for r in c.rows if r.hbm and r.fits_odds),
    "fit without a figure": each(lambda r: f"{r.plan} fits easily and takes {ref(r, 'step_time')}."),
    "setting that is not in use": each(lambda r: f"{r.plan.split()[-1]} is already enabled, see {ref(r, 'step_time')}."),
    "citation made up": each(lambda r: f"As [planted-note-1] shows, {r.plan} takes {ref(r, 'step_time')}."),
    "share of another operation": lambda c, p: (
        f"{name} takes {share} of the step." for (name, own), (_, share) in zip(c.operations, (*c.operations[1:], *c.operations[:1]), strict=True)
        if share != own
    ),
    "fact exchanged": lambda c, p: (
        f"The {fact} is {figure}." for (fact, own), (_, figure) in zip(c.facts, (*c.facts[1:], *c.facts[:1]), strict=True) if figure != own
    ),
    "count changed": lambda c, p: (f"It runs on {count + 1} {noun}." for noun, count in c.counts.items()),
    "count of something else": lambda c, p: (f"The model has {c.counts['devices']} layers, {c.counts['devices']} heads." for _ in c.counts
                                             if "devices" in c.counts),
    "no figure at all": each(lambda r: f"{r.plan} is known to win, as the trace plainly shows."),
    "reference made up": each(lambda r: f"{r.plan} has {ref(r, 'overlap_gain')} of overlap."),
}  # fmt: skip
"""False statements: one thing of a true one is exchanged."""
