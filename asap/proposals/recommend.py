"""Which proposal to run first, or why to keep what runs."""

from asap.core.units import Quantity, format_bytes, format_odds, format_percent, format_seconds, none_of
from asap.diagnosis.diagnosis import Bottleneck
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.evidence.judgement import Judgement
from asap.prediction.prediction import Prediction
from asap.proposals.options import SETTING, SYNC_EACH_BATCH, Option
from asap.proposals.proposal import Proposal, Recommendation
from asap.proposals.selection.candidate import fit_odds, fits
from asap.proposals.selection.choice import LEAST_WORTH, MEASURABLE
from asap.proposals.situation import OTHER, TOO_TIGHT, Situation
from asap.proposals.smallest_fit import SmallestFit
from asap.proposals.trials import OfferedTrial, effect
from asap.study.study import BREAKS, Study

_FIRST_PROPOSAL = "proposal 1"
_SETTING_FIRST = "Start with a setting, not with a plan:"
_OFFLOAD_LESS = (
    "No other mesh shortens the copies with host memory that the step waits for: offload less, or compute again what is"
    " cheaper than its copy. Give architecture, batch and sequence to learn which tensors."
)


def recommend(
    proposals: tuple[Proposal, ...], considered: int, situation: Situation | None = None,
    bottleneck: Bottleneck | None = None, first: str = _FIRST_PROPOSAL, start: str | None = None,
    unlaunched: str | None = None,
) -> Recommendation:  # fmt: skip
    """Run the first proposal first, unless its gain could not even be measured.

    Args:
        proposals: best first.
        considered: configurations beside the one that runs, whether they fit or not.
        situation: of the run; what does not fit is never kept.
        bottleneck: of the run; copies with host memory are not kept because no mesh shortens them.
        first: what the first proposal is called where this is read.
        start: where nothing runs, the line for the plan that is assumed.
        unlaunched: why a plan that is likely to fit cannot be launched.
    """
    if situation is not None and situation.name in TOO_TIGHT:
        what = "What runs now" if start is None else "The start"
        return _make_fit(proposals, considered, f"{what} {TOO_TIGHT[situation.name]}", first, unlaunched)
    if not proposals and considered and situation is not None and situation.name == "no_plan":
        statement = (
            f"No proposal: {none_of(considered, 'plan')} predicted to fit with the settings at hand. Give the"
            " plan that runs with --plan: rematerialisation, microbatches and offload are then searched too."
        )
        return Recommendation(first=None, keep_incumbent=False, statement=statement)
    if not proposals and bottleneck is Bottleneck.HOST_TRANSFER:
        return Recommendation(first=None, keep_incumbent=False, statement=_OFFLOAD_LESS)
    if start is not None and situation is not None:
        return _where_nothing_runs(proposals, considered, first, start)
    if not proposals:
        none = f"{none_of(considered, OTHER)} expected to be measurably faster and to fit"
        statement = f"Keep what you have: {none if considered else 'no other configuration is known to be possible'}."
        return Recommendation(first=None, keep_incumbent=True, statement=statement)
    best = proposals[0]
    if best.prediction.relative_step_time is None:
        times = [one.prediction.step_time.value for one in proposals if one.prediction.step_time]
        slower = bool(times) and min(times) < times[0]
        why = "others are faster, and less likely to fit" if slower else "it has the lowest predicted step time"
        statement = f"The plan that runs is unknown (say it with --plan). Start with {first} ({best.plan}): {why}."
        return Recommendation(first=1, keep_incumbent=False, statement=statement)
    gain = 1 - best.prediction.relative_step_time.value
    named = f"{first} ({_what_changes(best)})"
    if gain <= 0:
        statement = f"Keep what you have: the best other plan, {named}, is not expected to be faster."
        return Recommendation(first=1, keep_incumbent=True, statement=statement)
    if best.test_worth is not None and not best.test_worth.worth_it:
        statement = f"Keep what you have: even a short test of {named} costs more than it is expected to save."
        return Recommendation(first=1, keep_incumbent=True, statement=statement)
    measurable, odds = gain > STEP_TIME_VARIATION, best.confidence.faster
    if measurable and (best.score >= LEAST_WORTH or odds is None):
        statement = f"Start with {named}: the step is expected to take {format_percent(gain)} less."
        return Recommendation(first=1, keep_incumbent=False, statement=statement)
    if measurable and odds is not None:
        likely = f"only {format_odds(odds.value)} likely to gain at all"
        doubt = f"It is expected to gain {format_percent(gain)}, but {likely}"
    else:
        varies = f"the {format_percent(STEP_TIME_VARIATION, 0)} by which undisturbed steps vary"
        doubt = f"Its predicted gain of {format_percent(gain)} is below {varies}"
        if gain < MEASURABLE < best.precedent:
            doubt = f"Published runs gained by such a change; {doubt[0].lower()}{doubt[1:]}"
    statement = f"If you test one, test {named}. {doubt}, so keeping what you have is as good an answer for now."
    return Recommendation(first=1, keep_incumbent=True, statement=statement)


def after_broken_rules(advice: Recommendation, study: Study) -> Recommendation:
    """Advice that says first which rules the plan on record breaks, where nothing tells that it ran."""
    broken = [one for one in study.warnings if one.startswith(BREAKS)] if study.profile is None else []
    return advice.model_copy(update={"statement": " ".join((*broken, advice.statement))})


def add_trial(
    advice: Recommendation, trial: OfferedTrial | None, best: Prediction | None, situation: Situation | None
) -> Recommendation:
    """Advice that names the most promising setting beside every plan first, where it brings more than any of them: what
    runs does not fit and does with it, or no plan saves as much."""
    if trial is None or (relative := trial.relative_step_time) is None:
        return advice
    if situation is not None and situation.name in TOO_TIGHT:
        brings = f"Modelled: {effect(relative, trial.saved_bytes)}, and the run fits."
        statement = f"{_SETTING_FIRST} {trial.title}. {brings}" if trial.fits else None
    else:
        statement = _instead_of_plans(trial, relative, best, advice.keep_incumbent) if trial.saves_time else None
    if statement is None:
        return advice
    return advice.model_copy(update={"statement": statement, "setting": trial.name})


def add_smallest_fit(
    advice: Recommendation, least: SmallestFit | None, proposals: tuple[Proposal, ...], situation: Situation,
    incumbent: Prediction | None,
) -> Recommendation:  # fmt: skip
    """Advice that names the smallest change with which the run fits, where it may not, and what is faster or likelier
    among the proposals, which come best first."""
    if incumbent is None or advice.setting is not None:
        return advice
    risk = f"What runs now is {format_odds(fit_odds(incumbent))} likely to fit"
    if least is None:
        unsaid = f" {risk}. {incumbent.memory.unsaid}" if incumbent.memory and incumbent.memory.unsaid else ""
        return advice.model_copy(update={"statement": f"{advice.statement}{unsaid}"})
    is_first = bool(proposals) and proposals[0].plan == least.plan and not least.settings
    tight = situation.name in TOO_TIGHT
    remedy = _FIRST_PROPOSAL if is_first else least.statement
    statement = f"{advice.statement} {risk}; should it run out of memory, the smallest change is {remedy}."
    if tight:
        likely = "fits" if fits(least.prediction) else "may fit, as nothing is likely to"
        start = advice.statement if is_first else f"Start with the smallest change that {likely}: {least.statement}."
        tried = f"{risk}: a short run tells. Should it die, {start[0].lower()}{start[1:]}"
        statement = (tried if _may_run(incumbent, least) else start) + _beside(least, proposals[is_first:])
    lines = advice.lines if is_first or (advice.first and not tight) else least.lines
    kept = advice.keep_incumbent and not tight
    return advice.model_copy(update={"statement": statement, "lines": lines, "keep_incumbent": kept})


def _may_run(incumbent: Prediction, least: SmallestFit) -> bool:
    """Whether what runs is likelier to fit than not, and the smallest change with which it does costs time."""
    now, then = incumbent.step_time, least.prediction.step_time
    return fit_odds(incumbent) >= 0.5 and bool(now and then and then.value > now.value * (1 + STEP_TIME_VARIATION))


def _beside(least: SmallestFit, others: tuple[Proposal, ...]) -> str:
    """What the next proposal is better at than the smallest change: its step, else its odds to fit."""
    if not others:
        return ""
    found, small = others[0].prediction, least.prediction
    rate, least_rate = found.tokens_per_second, small.tokens_per_second
    named = f"proposal {others[0].rank} ({_what_changes(others[0])}), {format_odds(fit_odds(found))} likely to fit."
    if rate is not None and least_rate is not None and rate.value > least_rate.value:
        return f" Faster: {named}"
    return f" Likelier to fit: {named}" if fit_odds(found) > fit_odds(small) else ""


def after_judgement(advice: Recommendation, judgement: Judgement | None) -> Recommendation:
    """Advice that finds out first why what was measured is not what the model expects; the same where it is."""
    if judgement is None or not judgement.is_finding:
        return advice
    if advice.keep_incumbent or advice.first is None:
        return Recommendation(first=None, keep_incumbent=True, statement=judgement.advice)
    statement = f"{judgement.advice} The proposals rest on the model alone, and come after that."
    return Recommendation(first=advice.first, keep_incumbent=True, statement=statement)


def _instead_of_plans(trial: OfferedTrial, saved: Quantity, best: Prediction | None, keep: bool) -> str | None:
    if keep:
        return f"Keep the plan, and test {trial.title}. Modelled: {effect(saved, 0)}."
    relative = best.relative_step_time if best is not None else None
    if relative is None or saved.value >= relative.value:
        return None
    return f"{_SETTING_FIRST} {trial.title}. Modelled: {effect(saved, 0)}, more than any plan saves."


def add_options(advice: Recommendation, options: tuple[Option, ...]) -> Recommendation:
    """Advice that names a setting first with which what does not fit needs less."""
    found = next((one for one in options if one.changes == SETTING and one.tokens_per_second is None), None)
    if advice.setting is not None or found is None:
        return advice
    statement = f"Start with a setting: {found.statement[0].lower()}{found.statement[1:]}"
    return Recommendation(
        first=None, keep_incumbent=False, statement=statement, setting=SYNC_EACH_BATCH, lines=found.lines
    )


def _where_nothing_runs(proposals: tuple[Proposal, ...], considered: int, first: str, start: str) -> Recommendation:
    if not proposals:
        none = f"{none_of(considered, OTHER)} expected to be measurably faster and to fit"
        statement = f"Start with the plan that is assumed: {none}. Its line: {'; '.join(start.splitlines())}"
        return Recommendation(first=None, keep_incumbent=True, statement=statement)
    best = proposals[0]
    step = best.prediction.step_time
    takes = f": a step is expected to take {format_seconds(step.value)}" if step else ""
    statement = f"Start with {first} ({_what_changes(best)}){takes}."
    return Recommendation(first=1, keep_incumbent=False, statement=statement)


def _make_fit(
    proposals: tuple[Proposal, ...], considered: int, verdict: str, first: str, unlaunched: str | None
) -> Recommendation:
    if not proposals and unlaunched is not None:
        statement = f"{verdict}. Of other configurations some are likely to fit, but cannot be launched: {unlaunched}."
        return Recommendation(first=None, keep_incumbent=False, statement=statement)
    if not proposals:
        statement = (
            f"{verdict}, and with this model and batch on these chips {none_of(considered, OTHER)} predicted to fit"
            " into HBM, whatever settings change with it. It needs other numerics, a smaller batch or more chips."
        )
        return Recommendation(first=None, keep_incumbent=False, statement=statement)
    best = proposals[0]
    held, step = best.prediction.memory, best.prediction.step_time
    uses = f" with {format_bytes(held.total.value)} of {format_bytes(held.capacity_bytes)}" if held else ""
    takes = f", at a step of {format_seconds(step.value)}" if step else ""
    statement = f"Start with {first} ({_what_changes(best)}): it fits{uses}{takes}."
    return Recommendation(first=1, keep_incumbent=False, statement=statement)


def _what_changes(proposal: Proposal) -> str:
    return ", ".join(map(str, proposal.settings)) or str(proposal.plan)
