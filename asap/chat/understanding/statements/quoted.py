"""A figure of the engine that is set against the one that was measured: "step is 39 ms but i see 45 in my log"."""

import re
from collections import defaultdict
from collections.abc import Sequence

from asap.evidence.anchor import modelled_now
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.study.study import Study

_SEEN = re.compile(
    r"\b(?:log(?:s|ged)?|measur\w*|clock\w*|profil\w*|xprof|nsys|dashboard|wandb|tensorboard|trace|wall|observ\w*|really|actually"
    r"|(?:i|we) (?:\w+ )?(?:see|saw|get|got|have|had|read)|took|ran)\b",
    re.I,
)
"""Words of a figure that was read off a run."""
JUDGED = re.compile(
    r"\b(?:slow|ages|forever|too|a lot|much|terrible|awful|bad|low|high|long|fine|great|good|looks?|feels?|seems?"
    r"|sounds?|hmm*|wow|wtf|crap|sucks?"
    r"|pathetic|ridiculous|lousy|poor|weak|sad|disappointing|meh|laughable|horrible|abysmal|rubbish)\b",
    re.I,
)
"""Words of an opinion on a figure."""
_ASKED = re.compile(r"\d\S*\W+(?:[a-z]+\W+){0,2}?(?:how|why|what|where|which)\b", re.I)
_OURS = re.compile(r"\b(?:our|my|we|i|takes?|is|was|are|now|baseline|runs?|at|new|current)\b", re.I)
"""Words of somebody who tells of the own run."""
_ROUNDED = 0.03
_OF_NOW = {Claim.STEP_TIME, Claim.MFU, Claim.HBM_BYTES, Claim.THROUGHPUT}


def without_quoted(facts: Sequence[StatedFact], study: Study) -> tuple[list[StatedFact], list[str]]:
    """The facts without figures that another one of the same line is set against, and what is said of those.

    Of two figures of what runs now one is quoted, if it is the engine's own, or if the other alone was read off a run.
    So is a lone one of the engine's own that an opinion is given on.
    """
    groups: dict[Claim, list[StatedFact]] = defaultdict(list)
    for fact in facts:
        if fact.claim in _OF_NOW and fact.plan == study.plan:
            groups[fact.claim].append(fact)
    quoted: list[StatedFact] = []
    said: list[str] = []
    for claim, group in groups.items():
        own, count = _own(claim, study), len({fact.value for fact in group})
        ours = [fact for fact in group if own and fact.value and abs(fact.value - own) <= _ROUNDED * own]
        if count == 1:
            quoted += [fact for fact in ours if _is_doubted(fact.words)]
            bare = [fact for fact in ours if fact not in quoted and own is not None and _is_shown(fact, own)]
            quoted += bare
            said += [_ours(fact) for fact in bare]
            continue
        unseen = [fact for fact in group if not _SEEN.search(fact.words)]
        if count == 2 and 0 < len(ours) < len(group):
            quoted += ours
        elif count == 2 and 0 < len(unseen) < len(group):
            quoted += unseen
            said += [f"Not recorded: {fact}, as the other figure was measured. Whose is it?" for fact in unseen]
    return [fact for fact in facts if fact not in quoted], said


def _is_shown(fact: StatedFact, own: float) -> bool:
    """Whether a bare step is the predicted one, as it is shown, and nobody says that it was measured."""
    bare = _SEEN.search(fact.words) is None and _OURS.search(fact.words) is None
    return bare and fact.claim is Claim.STEP_TIME and fact.value is not None and f"{own:.3g}" == f"{fact.value:.3g}"


def _ours(fact: StatedFact) -> str:
    step = f"{fact.value:g} s"
    return f'{step} is what is predicted for what runs now. If you measured it, say "we measured {step}".'


def _is_doubted(words: str) -> bool:
    """Whether a figure that was not read off a run is judged, or asked about: "mfu 20 % - how is that counted"."""
    return (JUDGED.search(words) or _ASKED.search(words)) is not None and not _SEEN.search(words)


def _own(claim: Claim, study: Study) -> float | None:
    """The engine's own figure of what runs now: of the profile, else of the model."""
    measured = study.profile.kpis.step_time_s if study.profile is not None else None
    if claim is Claim.STEP_TIME and measured is not None:
        return measured
    now = modelled_now(study)
    if now is None:
        return None
    figures = {
        Claim.STEP_TIME: now.step_time, Claim.MFU: now.mfu, Claim.THROUGHPUT: now.tokens_per_second,
        Claim.HBM_BYTES: now.memory.total if now.memory else None,
    }  # fmt: skip
    figure = figures.get(claim)
    return figure.value if figure is not None else None
