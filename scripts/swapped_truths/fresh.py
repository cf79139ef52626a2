"""Kinds that were written after both halves of the others were opened; nothing was mended on these before they were run once."""

# ruff: noqa: E501

from asap.answers.plan_row import PlanRow
from swapped_truths.statements import Make, each, gain, off, other, ref, step, two, way

FRESH_TRUE: dict[str, Make] = {
    "fresh: table line": each(lambda r: f"- {r.plan}: {ref(r, 'step_time')} ({ref(r, 'vs_now')})"),
    "fresh: recommendation": each(lambda r: f"Run {r.plan} first, as its step is expected to take {step(r)}."),
    "fresh: relative to first": two(
        lambda r, o: f"Compared with {o.plan} at {ref(o, 'step_time')}, {r.plan} needs {ref(r, 'step_time')}."
    ),
    "fresh: likely": each(lambda r: f"There is a chance of {ref(r, 'faster_odds')} that {r.plan} helps."),
    "fresh: share of communication": lambda c, p: (
        f"Communication is {ref(r, 'communication')} of the step with {r.plan}." for r in c.rows if r.communication
    ),
    "fresh: memory of a plan": lambda c, p: (f"{r.plan} needs {ref(r, 'hbm')} of HBM." for r in c.rows if r.hbm),
    "fresh: loss": lambda c, p: (
        f"{r.plan} would be slower, by {gain(r)}." for r in c.rows if r.vs_now and r.vs_now.value > 0
    ),
    "fresh: ratio computed": each(lambda r: f"{r.plan} takes {{{ref(r, 'step_time')[1:-1]} / now.step_time}} of the step of now."),
}  # fmt: skip

FRESH_FALSE: dict[str, Make] = {
    "fresh: with a reason": each(lambda r: f"Because {r.plan} moves tensor parallelism, its step takes {ref(r, 'step_time')}."),
    "fresh: table line of another plan": two(lambda r, o: f"- {r.plan}: {ref(o, 'step_time')} ({ref(r, 'vs_now')})"),
    "fresh: observed": each(lambda r: f"In our runs we observed {step(r)} with {r.plan}."),
    "fresh: clocked": each(lambda r: f"{r.plan} clocked {ref(r, 'step_time')} last week."),
    "fresh: guaranteed": each(lambda r: f"{r.plan} is guaranteed to take {step(r)}."),
    "fresh: doubles": each(lambda r: f"{r.plan} doubles throughput at {ref(r, 'step_time')}."),
    "fresh: ahead of a better one": two(
        lambda r, o: f"{r.plan if _slower(r, o) else o.plan} beats {o.plan if _slower(r, o) else r.plan}: "
        f"{step(r if _slower(r, o) else o)} against {step(o if _slower(r, o) else r)}."
    ),
    "fresh: gain turned": each(lambda r: f"Switching to {r.plan} {way(r, 'costs', 'gains')} {gain(r)}."),
    "fresh: ratio of another plan": lambda c, p: (
        f"{r.plan} takes {{{ref(other(c, r, p), 'step_time')[1:-1]} / now.step_time}} of the step of now." for r in c.rows
    ),
    "fresh: switched on": each(lambda r: f"{r.plan.split()[-1]} is switched on at {ref(r, 'step_time')}."),
    "fresh: digit in a second figure": lambda c, p: (
        f"{r.plan} takes {step(r)} rather than {off(step(c.now), p)}." for r in c.rows
    ),
    "fresh: communication of another": lambda c, p: (
        f"Communication is {ref(other(c, r, p), 'communication')} of the step with {r.plan}."
        for r in c.rows if r.communication and other(c, r, p).communication
    ),
    "fresh: overflow": lambda c, p: (
        f"{r.plan} runs out of memory at {ref(r, 'hbm')}." for r in c.rows
        if r.hbm and r.fits_odds and r.fits_odds.value >= 0.7
    ),
    "fresh: step called gain": each(lambda r: f"{r.plan} saves {step(r)} a step."),
    "fresh: change as throughput": each(lambda r: f"{r.plan} raises MFU by {gain(r)}."),
}  # fmt: skip


LATER_TRUE: dict[str, Make] = {
    "later: bracketed figures": each(lambda r: f"First {r.plan} (step {step(r)}, change {ref(r, 'vs_now')})."),
    "later: numbered line": each(lambda r: f"1. {r.plan}, {ref(r, 'step_time')} a step"),
    "later: question of doubt": each(lambda r: f"{r.plan} may take {ref(r, 'step_time')}, which is uncertain."),
    "later: two sentences": each(lambda r: f"Now look at {r.plan}. Its step is {ref(r, 'step_time')}."),
    "later: expected value": each(lambda r: f"The engine expects {step(r)} from {r.plan}."),
    "later: from now to the plan": lambda c, p: (
        f"With {r.plan} the step goes from {step(c.now)} now to {step(r)}." for r in c.rows if step(c.now) != step(r)
    ),
}

LATER_FALSE: dict[str, Make] = {
    "later: bracketed figure of another": two(lambda r, o: f"First {r.plan} (step {step(o)})."),
    "later: from the plan to now": lambda c, p: (
        f"With {r.plan} the step goes from {step(r)} now to {step(c.now)}." for r in c.rows if step(c.now) != step(r)
    ),
    "later: profiled": each(lambda r: f"A profile of {r.plan} shows {ref(r, 'step_time')}."),
    "later: always": each(lambda r: f"{r.plan} always takes {ref(r, 'step_time')}."),
    "later: tenfold": each(lambda r: f"{r.plan} is a tenfold win at {ref(r, 'step_time')}."),
    "later: invented reference": each(lambda r: f"{r.plan} wastes {ref(r, 'idle_time')} of its step."),
    "later: number of the model's own": each(lambda r: f"{r.plan} saves {{{ref(r, 'step_time')[1:-1]} * 0.37}}."),
    "later: unit of memory": each(lambda r: f"{r.plan} needs {step(r).split()[0]} GiB."),
    "later: another plan's odds": two(
        lambda r, o: f"The odds of {r.plan} are {ref(o, 'faster_odds')} to be faster, at {ref(r, 'step_time')}."
    ),
    "later: next sentence of another": two(lambda r, o: f"Now look at {r.plan}. Its step is {ref(o, 'step_time')}."),
    "later: confirmed": each(lambda r: f"We confirmed {ref(r, 'step_time')} with {r.plan} on our pod."),
}
"""Written when those above were opened; nothing was mended on these."""


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
    "new: step said of memory": each(lambda r: f"{r.plan} needs {ref(r, 'step_time')} of HBM per device."),
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
"""In another style, put away on 2026-11-28 before the check of words took its present form."""


LAST_TRUE: dict[str, Make] = {
    "last: question back": each(lambda r: f"Would you accept {ref(r, 'step_time')} per step from {r.plan}?"),
    "last: semicolons": each(lambda r: f"{r.plan}; step {ref(r, 'step_time')}; change {ref(r, 'vs_now')}"),
    "last: estimate with doubt": each(lambda r: f"My best guess for {r.plan} remains the estimate of {ref(r, 'step_time')}."),
    "last: memory with odds": lambda c, p: (
        f"At odds of {ref(r, 'fits_odds')}, {r.plan} would fit into memory with {ref(r, 'hbm')}." for r in c.rows
        if r.hbm and r.fits_odds and r.fits_odds.value >= 0.7
    ),
    "last: budget of time": each(lambda r: f"Each iteration of {r.plan} costs us about {step(r)} according to the model."
                                 if r.vs_now and r.vs_now.value > 0 else f"Each iteration of {r.plan} should last about {step(r)}."),
    "last: improvement as noun": lambda c, p: (
        f"The improvement from {r.plan} should be around {gain(r)}." for r in c.rows if r.vs_now and r.vs_now.value < 0
    ),
    "last: worse choice": lambda c, p: (
        f"Avoid {r.plan}: it adds {gain(r)} to the step." for r in c.rows if r.vs_now and r.vs_now.value > 0
    ),
    "last: ordering": two(lambda r, o: f"Try {r.plan} at {ref(r, 'step_time')} before {o.plan} at {ref(o, 'step_time')}."),
    "last: collectives": lambda c, p: (f"Collectives make up {ref(r, 'communication')} of {r.plan}." for r in c.rows if r.communication),
    "last: headline": each(lambda r: f"### {r.plan}: {ref(r, 'vs_now')} against today"),
}  # fmt: skip

LAST_FALSE: dict[str, Make] = {
    "last: question back of another": two(lambda r, o: f"Would you accept {ref(o, 'step_time')} per step from {r.plan}?"),
    "last: everybody": each(lambda r: f"Everybody uses {r.plan} and gets {ref(r, 'step_time')}."),
    "last: linear scaling": each(lambda r: f"{r.plan} scales linearly, so it needs {ref(r, 'step_time')}."),
    "last: our run": each(lambda r: f"Our own run of {r.plan} finished at {ref(r, 'step_time')}."),
    "last: no risk": each(lambda r: f"{r.plan} carries no risk at {ref(r, 'step_time')}."),
    "last: optimum": each(lambda r: f"{r.plan} is optimal with its {ref(r, 'step_time')}."),
    "last: fraction": each(lambda r: f"Only a tenth of {ref(r, 'step_time')} is idle under {r.plan}."),
    "last: order of another": two(lambda r, o: f"Try {r.plan} at {ref(o, 'step_time')} before {o.plan} at {ref(r, 'step_time')}."),
    "last: improvement of a worse one": lambda c, p: (
        f"The improvement from {r.plan} should be around {gain(r)}." for r in c.rows if r.vs_now and r.vs_now.value > 0
    ),
    "last: collectives of another": lambda c, p: (
        f"Collectives make up {ref(other(c, r, p), 'communication')} of {r.plan}." for r in c.rows
        if r.communication and other(c, r, p).communication
    ),
    "last: log shows": each(lambda r: f"The log shows {ref(r, 'step_time')} for {r.plan}."),
    "last: running": each(lambda r: f"We are running {r.plan} at {ref(r, 'step_time')} today."),
    "last: digit off": lambda c, p: (f"Each iteration of {r.plan} should last about {off(step(r), p)}." for r in c.rows),
    "last: step as share": each(lambda r: f"Collectives make up {ref(r, 'step_time')} of {r.plan}."),
}  # fmt: skip
"""Written on 2026-11-28 when all others were opened; nothing was mended on these."""


FAR_TRUE: dict[str, Make] = {
    "far: verdict": each(
        lambda r: f"Verdict: {r.plan} clocks in at roughly {ref(r, 'step_time')}, subject to the stated band."
    ),
    "far: budget": each(lambda r: f"Budget {step(r)} per iteration if we adopt {r.plan}."),
    "far: pencilled": each(lambda r: f"I have pencilled in {ref(r, 'step_time')} for {r.plan}."),
    "far: bottom line": each(
        lambda r: f"Bottom line: {ref(r, 'vs_now')} relative to the present setup, using {r.plan}."
    ),
    "far: upside": lambda c, p: (
        f"The upside of {r.plan} is {gain(r)} off the step." for r in c.rows if r.vs_now and r.vs_now.value < 0
    ),
    "far: penalty": lambda c, p: (
        f"{r.plan} carries a penalty of {gain(r)}." for r in c.rows if r.vs_now and r.vs_now.value > 0
    ),
    "far: confidence": each(lambda r: f"Confidence that {r.plan} wins: {ref(r, 'faster_odds')}."),
    "far: footprint": lambda c, p: (
        f"Footprint of {r.plan}: {ref(r, 'hbm')} on each accelerator." for r in c.rows if r.hbm
    ),
    "far: traffic": lambda c, p: (
        f"Network traffic occupies {ref(r, 'communication')} of the timeline under {r.plan}."
        for r in c.rows
        if r.communication
    ),
    "far: versus": two(
        lambda r, o: f"Pitting {r.plan} ({ref(r, 'step_time')}) against {o.plan} ({ref(o, 'step_time')})."
    ),
    "far: caveat": each(
        lambda r: f"Caveat emptor: {ref(r, 'step_time')} for {r.plan} is merely modelled, no stopwatch involved."
    ),
    "far: lands": each(lambda r: f"{r.plan} lands around {ref(r, 'step_time')}."),
}
FAR_FALSE: dict[str, Make] = {
    "far: verdict of another": two(
        lambda r, o: f"Verdict: {r.plan} clocks in at roughly {ref(o, 'step_time')}, subject to the stated band."
    ),
    "far: digit off": lambda c, p: (f"Budget {off(step(r), p)} per iteration if we adopt {r.plan}." for r in c.rows),
    "far: upside turned": lambda c, p: (
        f"The upside of {r.plan} is {gain(r)} off the step." for r in c.rows if r.vs_now and r.vs_now.value > 0
    ),
    "far: penalty turned": lambda c, p: (
        f"{r.plan} carries a penalty of {gain(r)}." for r in c.rows if r.vs_now and r.vs_now.value < 0
    ),
    "far: traffic of another": lambda c, p: (
        f"Network traffic occupies {ref(other(c, r, p), 'communication')} of the timeline under {r.plan}."
        for r in c.rows
        if r.communication and other(c, r, p).communication
    ),
    "far: confidence turned": lambda c, p: (
        f"Confidence that {r.plan} loses: {ref(r, 'faster_odds')}." for r in c.rows if r.faster_odds
    ),
    "far: stopwatch": each(lambda r: f"Our stopwatch put {r.plan} at {ref(r, 'step_time')}."),
    "far: vendor": each(lambda r: f"The vendor vouches for {ref(r, 'step_time')} with {r.plan}."),
    "far: bulletproof": each(lambda r: f"{r.plan} is bulletproof at {ref(r, 'step_time')}."),
    "far: dataloader": each(lambda r: f"The dataloader drags {r.plan} to {ref(r, 'step_time')}."),
    "far: halves": each(lambda r: f"{r.plan} halves the bill with {ref(r, 'step_time')}."),
    "far: stable": each(lambda r: f"Loss stays stable under {r.plan} at {ref(r, 'step_time')}."),
    "far: footprint as step": lambda c, p: (
        f"Footprint of {r.plan}: {ref(r, 'step_time')} on each accelerator." for r in c.rows
    ),
    "far: perfect overlap": each(lambda r: f"Perfect overlap takes {r.plan} to {ref(r, 'step_time')}."),
    "far: champion": each(lambda r: f"{r.plan} is the undisputed champion with {ref(r, 'step_time')}."),
    "far: pencilled of another": two(lambda r, o: f"I have pencilled in {ref(o, 'step_time')} for {r.plan}."),
}
"""Far from the words of the list, written on 2026-11-29 when all others were opened; nothing was mended on these."""


BEYOND_TRUE: dict[str, Make] = {
    "beyond: shopping list": each(lambda r: f"Queue up {r.plan} next Monday; ballpark {ref(r, 'step_time')} per optimizer update."),
    "beyond: metaphor": each(lambda r: f"If {r.plan} were a racehorse, its lap would be {ref(r, 'step_time')}."),
    "beyond: telegram": each(lambda r: f"{r.plan} STOP step {step(r)} STOP delta {ref(r, 'vs_now')} STOP"),
    "beyond: key and value": each(lambda r: f"step_time[{r.plan}] := {ref(r, 'step_time')}"),
    "beyond: trims": lambda c, p: (
        f"Adopting {r.plan} ought to trim {gain(r)} from every iteration." for r in c.rows if r.vs_now and r.vs_now.value < 0
    ),
    "beyond: drags": lambda c, p: (
        f"Alas, {r.plan} drags every iteration out by {gain(r)}." for r in c.rows if r.vs_now and r.vs_now.value > 0
    ),
    "beyond: bookmaker": each(lambda r: f"Bookmakers would quote {ref(r, 'faster_odds')} for {r.plan} winning the sprint."),
    "beyond: pocket money": lambda c, p: (
        f"Out of each accelerator's HBM, {r.plan} swallows {ref(r, 'hbm')}." for r in c.rows if r.hbm
    ),
    "beyond: chatter": lambda c, p: (
        f"Chips chatter for {ref(r, 'communication')} of the cycle once {r.plan} is rolled out." for r in c.rows if r.communication
    ),
    "beyond: duel": two(
        lambda r, o: f"In the red corner {r.plan} with {ref(r, 'step_time')}; in the blue corner {o.plan} with {ref(o, 'step_time')}."
    ),
    "beyond: simulation": each(lambda r: f"Simulated, not witnessed: {r.plan}, {ref(r, 'step_time')}."),
    "beyond: baseline first": lambda c, p: (
        f"Status quo {{now.step_time}}; hypothetical {r.plan} {ref(r, 'step_time')}." for r in c.rows
    ),
    "beyond: polite": each(lambda r: f"Might I humbly propose {r.plan}, whose cadence our analytical forecast pegs at {ref(r, 'step_time')}?"),
}  # fmt: skip

BEYOND_FALSE: dict[str, Make] = {
    "beyond: shopping list of another": two(lambda r, o: f"Queue up {r.plan} next Monday; ballpark {ref(o, 'step_time')} per optimizer update."),
    "beyond: telegram digit off": lambda c, p: (f"{r.plan} STOP step {off(step(r), p)} STOP" for r in c.rows),
    "beyond: telegram of another": two(lambda r, o: f"{r.plan} STOP step {step(o)} STOP"),
    "beyond: trims turned": lambda c, p: (
        f"Adopting {r.plan} ought to trim {gain(r)} from every iteration." for r in c.rows if r.vs_now and r.vs_now.value > 0
    ),
    "beyond: drags turned": lambda c, p: (
        f"Alas, {r.plan} drags every iteration out by {gain(r)}." for r in c.rows if r.vs_now and r.vs_now.value < 0
    ),
    "beyond: bookmaker of another": two(lambda r, o: f"Bookmakers would quote {ref(o, 'faster_odds')} for {r.plan} winning the sprint."),
    "beyond: HBM for communication": lambda c, p: (
        f"Out of each accelerator's HBM, {r.plan} swallows {ref(r, 'communication')}." for r in c.rows if r.communication
    ),
    "beyond: chatter of another": lambda c, p: (
        f"Chips chatter for {ref(other(c, r, p), 'communication')} of the cycle once {r.plan} is rolled out."
        for r in c.rows if r.communication and other(c, r, p).communication
    ),
    "beyond: duel exchanged": two(
        lambda r, o: f"In the red corner {r.plan} with {ref(o, 'step_time')}; in the blue corner {o.plan} with {ref(r, 'step_time')}."
    ),
    "beyond: witnessed": each(lambda r: f"Witnessed on the cluster: {r.plan}, {ref(r, 'step_time')}."),
    "beyond: night shift": each(lambda r: f"Last night's job logged {ref(r, 'step_time')} under {r.plan}."),
    "beyond: dashboard": each(lambda r: f"Grafana shows {ref(r, 'step_time')} for {r.plan}."),
    "beyond: empirical": each(lambda r: f"Empirically, {r.plan} sits at {ref(r, 'step_time')}."),
    "beyond: compiler said": each(lambda r: f"According to the XLA compiler, {r.plan} needs {ref(r, 'step_time')}."),
    "beyond: live": each(lambda r: f"{r.plan} is live right now with {ref(r, 'step_time')}."),
    "beyond: baseline exchanged": lambda c, p: (
        f"Status quo {ref(r, 'step_time')}; hypothetical {r.plan} {{now.step_time}}." for r in c.rows if step(r) != step(c.now)
    ),
    "beyond: unit": each(lambda r: f"{r.plan} clicks along at {step(r).split()[0]} minutes per update."),
    "beyond: half in words": each(lambda r: f"Roughly half of the step evaporates under {r.plan}, down to {ref(r, 'step_time')}."),
    "beyond: memory turned": lambda c, p: (
        f"{r.plan} blows the HBM budget: {ref(r, 'hbm')}." for r in c.rows if r.hbm and r.fits_odds and r.fits_odds.value >= 0.7
    ),
    "beyond: slower praised": lambda c, p: (
        f"{r.plan} outpaces today's layout by {ref(r, 'vs_now')}." for r in c.rows if r.vs_now and r.vs_now.value > 0
    ),
    "beyond: polite of another": two(lambda r, o: f"Might I humbly propose {r.plan}, whose cadence our analytical forecast pegs at {ref(o, 'step_time')}?"),
    "beyond: invented citation": each(lambda r: f"[maxtext-pr-99999] backs {r.plan} at {ref(r, 'step_time')}."),
}  # fmt: skip
"""One thing exchanged in each, in a style of many registers; put away on 2026-11-29 before the designs were compared."""


THREADS_TRUE: dict[str, Make] = {
    "threads: sounds reasonable": each(lambda r: f"Expect around {ref(r, 'step_time')} per iteration from {r.plan}, does that sound reasonable?"),
    "threads: stays flat": each(lambda r: f"The iteration time of {r.plan} should stay flat near {ref(r, 'step_time')}."),
    "threads: would bring": lambda c, p: (f"{r.plan} would bring per-step time from {{now.step_time}} to {ref(r, 'step_time')}." for r in c.rows),
    "threads: ceiling": lambda c, p: (f"The real ceiling of {r.plan} is exposed comms, {ref(r, 'communication')}." for r in c.rows if r.communication),
    "threads: RAM": lambda c, p: (f"{r.plan} eats {ref(r, 'hbm')} on each GPU." for r in c.rows if r.hbm),
    "threads: envelope": each(lambda r: f"Back of the envelope for {r.plan}: {step(r)}."),
    "threads: summary": each(lambda r: f"TL;DR {r.plan}, {ref(r, 'vs_now')}."),
    "threads: rewritten": each(lambda r: f"Flip the config to {r.plan} and the scheduler has {ref(r, 'step_time')} of work per update."),
    "threads: tie": two(lambda r, o: f"Honestly {r.plan} ({step(r)}) and {o.plan} ({step(o)}) are in the same league."),
}  # fmt: skip

THREADS_FALSE: dict[str, Make] = {
    "threads: getting": each(lambda r: f"I'm getting about {ref(r, 'step_time')} per iteration with {r.plan}."),
    "threads: same here": each(lambda r: f"Same here with {r.plan}: {ref(r, 'step_time')} on our cluster."),
    "threads: went from": lambda c, p: (f"Per-step time went from {{now.step_time}} to {ref(r, 'step_time')} with {r.plan}." for r in c.rows),
    "threads: current speed": each(lambda r: f"The current speed with {r.plan} is {ref(r, 'step_time')}."),
    "threads: reran": each(lambda r: f"I reran the experiments with {r.plan}: {ref(r, 'step_time')}."),
    "threads: exactly what happened": each(lambda r: f"That is exactly what happened with {r.plan}: {ref(r, 'step_time')}."),
    "threads: elapsed, digit off": lambda c, p: (f"elapsed time per iteration | {r.plan} | {off(step(r), p)}" for r in c.rows),
    "threads: sounds reasonable, of another": two(lambda r, o: f"Expect around {ref(o, 'step_time')} per iteration from {r.plan}, does that sound reasonable?"),
    "threads: would bring, exchanged": lambda c, p: (
        f"{r.plan} would bring per-step time from {ref(r, 'step_time')} to {{now.step_time}}." for r in c.rows if step(r) != step(c.now)
    ),
    "threads: ceiling of another": lambda c, p: (
        f"The real ceiling of {r.plan} is exposed comms, {ref(other(c, r, p), 'communication')}." for r in c.rows
        if r.communication and other(c, r, p).communication
    ),
    "threads: summary of another": two(lambda r, o: f"TL;DR {r.plan}, {ref(o, 'vs_now')}."),
    "threads: envelope of another": two(lambda r, o: f"Back of the envelope for {r.plan}: {step(o)}."),
    "threads: multiple": each(lambda r: f"That's 3x faster than what we run, {r.plan} at {ref(r, 'step_time')}."),
    "threads: tie exchanged": two(lambda r, o: f"Honestly {r.plan} ({step(o)}) and {o.plan} ({step(r)}) are in the same league."),
    "threads: wall clock": each(lambda r: f"Wall-clock for {r.plan} is {ref(r, 'step_time')}, straight from wandb."),
    "threads: CI job": each(lambda r: f"The nightly CI job of {r.plan} passes at {ref(r, 'step_time')}."),
}  # fmt: skip
"""In words of public issues on training speed; put away on 2026-11-29 when the check had its present form."""


def _bare(row: PlanRow, name: str) -> str:
    return ref(row, name)[1:-1]


def _slower(one: PlanRow, other: PlanRow) -> bool:
    return bool(one.step_time and other.step_time and one.step_time.value > other.step_time.value)
