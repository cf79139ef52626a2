"""Kinds in another style, put away on 2026-11-28 before the checks took their present form, and run once after."""

# ruff: noqa: E501

from asap.answers.plan_row import PlanRow
from swapped_truths.statements import Make, each, gain, off, other, ref, step, two, way


def _bare(row: PlanRow, name: str) -> str:
    return ref(row, name)[1:-1]


NEW_TRUE: dict[str, Make] = {
    "new: bold label": each(lambda r: f"**{r.plan}** → {ref(r, 'step_time')} per step, {ref(r, 'vs_now')}."),
    "new: passive": each(lambda r: f"For {r.plan}, {ref(r, 'step_time')} is what the engine predicts."),
    "new: advice with odds": each(lambda r: f"I'd give {r.plan} a go; its odds of being faster stand at {ref(r, 'faster_odds')}."
                                  if r.faster_odds and r.vs_now and r.vs_now.value < 0 else f"I'd skip {r.plan}; its step stays near {ref(r, 'step_time')}."),
    "new: both against now": lambda c, p: (f"Today's run needs {{now.step_time}}; {r.plan} should need {ref(r, 'step_time')}." for r in c.rows),
    "new: memory headline": lambda c, p: (f"Memory: {r.plan} would use {ref(r, 'hbm')} per device." for r in c.rows if r.hbm),
    "new: typed in brackets": each(lambda r: f"My pick is {r.plan} (about {step(r)} per step)."),
    "new: difference in words": lambda c, p: (
        f"Per step that is {{now.step_time - {_bare(r, 'step_time')}}} {way(r, 'less', 'more')} with {r.plan} than we have now." for r in c.rows
    ),
    "new: comparison of two": two(
        lambda r, o: f"{r.plan} comes in at {ref(r, 'step_time')}, while {o.plan} is estimated at {ref(o, 'step_time')}."
    ),
    "new: communication": lambda c, p: (f"Of its step, {r.plan} spends {ref(r, 'communication')} on communication." for r in c.rows if r.communication),
    "new: change typed": each(lambda r: f"Moving to {r.plan} should make a step {gain(r)} {way(r, 'shorter', 'longer')}."),
    "new: question answered": each(lambda r: f"How long is a step with {r.plan}? Roughly {ref(r, 'step_time')}."),
    "new: measured step of now": lambda c, p: (
        text for text in ("Right now a step takes {now.measured_step_time}, as measured.", "You measured {now.measured_step_time} per step.")
        if "now.measured_step_time" in c.catalogue.figures
    ),
}  # fmt: skip

NEW_FALSE: dict[str, Make] = {
    "new: bold label of another": two(lambda r, o: f"**{r.plan}** → {ref(o, 'step_time')} per step."),
    "new: colleague's word": each(lambda r: f"A colleague saw {ref(r, 'step_time')} with {r.plan} on Tuesday."),
    "new: hidden communication": each(lambda r: f"{r.plan} hides all of its collectives and so reaches {ref(r, 'step_time')}."),
    "new: production": each(lambda r: f"Google trains with {r.plan} at {ref(r, 'step_time')} per step."),
    "new: a fraction in words": each(lambda r: f"With {r.plan} a step shrinks by two thirds to {ref(r, 'step_time')}."),
    "new: cause made up": each(lambda r: f"The input pipeline stalls {r.plan}, hence {ref(r, 'step_time')}."),
    "new: loss curve": each(lambda r: f"{r.plan} converges sooner and takes {ref(r, 'step_time')} per step."),
    "new: rank made up": each(lambda r: f"No layout on Earth beats {r.plan} with its {ref(r, 'step_time')}."),
    "new: memory said of a step": lambda c, p: (f"A step with {r.plan} lasts {ref(r, 'hbm')}." for r in c.rows if r.hbm),
    "new: odds turned": lambda c, p: (
        f"It is {ref(r, 'faster_odds')} sure that {r.plan} is slower." for r in c.rows if r.faster_odds
    ),
    "new: typed of another in brackets": two(lambda r, o: f"My pick is {r.plan} (about {step(o)} per step)."),
    "new: typed digit off, reference right": lambda c, p: (
        f"{r.plan}: {ref(r, 'step_time')}, or {off(step(r), p)} with some luck." for r in c.rows
    ),
    "new: free of charge": each(lambda r: f"{r.plan} needs no code change and no restart, and takes {ref(r, 'step_time')}."),
    "new: swapped around now": lambda c, p: (
        f"Today's run needs {ref(r, 'step_time')}; {r.plan} should need {{now.step_time}}." for r in c.rows if step(r) != step(c.now)
    ),
    "new: compiler's word": each(lambda r: f"XLA itself reports {ref(r, 'step_time')} for {r.plan}."),
    "new: percent of another": lambda c, p: (
        f"Moving to {r.plan} should make a step {gain(other(c, r, p))} {way(r, 'shorter', 'longer')}." for r in c.rows
    ),
    "new: throughput tripled": each(lambda r: f"Tokens per second go up threefold with {r.plan}: {ref(r, 'step_time')}."),
    "new: hardware made up": each(lambda r: f"On the newer chips {r.plan} takes {ref(r, 'step_time')}."),
}  # fmt: skip
