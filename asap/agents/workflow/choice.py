"""What is made of a model's choice of plans and of its ideas: what can be used, filled up with the engine's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.tools.toolbox import LONGEST_NAME
from asap.agents.workflow.protocol import Pick, UntestedIdea
from asap.answers.figure import change
from asap.core.errors import AsapError, PlanError
from asap.core.text import plain
from asap.history.record import ChangeKind
from asap.plans import Plan
from asap.plans.validity import violations
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals import ProposalSet
from asap.proposals.ideas import MOST, Idea, Standing, bounded, engine_ideas
from asap.proposals.launch import why_not_launched
from asap.proposals.options import options
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import RankedCandidates, evaluate
from asap.proposals.reasons.explain import cite
from asap.proposals.recommend import add_options
from asap.proposals.selection.candidate import Candidate, fits
from asap.proposals.selection.choice import COUNT
from asap.proposals.situation import TOO_TIGHT
from asap.study.study import Study, read_plan


@dataclass
class Choice:
    """The plans in their order, the words for each of the model's, and why others of its picks are not among them."""

    candidates: list[Candidate]
    reasons: dict[Plan, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


def chosen(ranked: RankedCandidates, picks: Sequence[Pick], foreign: Sequence[str] = ()) -> Choice:
    """The choice of a model, in which each plan stands where the engine predicts it no worse than its own.

    Args:
        ranked: all candidates.
        picks: of the model.
        foreign: text from files; a plan that it names is taken only if the engine chose it, too.
    """
    engine = ranked.chosen
    found = Choice([])
    for pick in picks[:COUNT]:
        try:
            candidate = _candidate(ranked, pick.plan)
            place = engine[len(found.candidates)] if len(found.candidates) < len(engine) else None
            if reason := _against(candidate, found.candidates, engine, place, foreign):
                raise PlanError(reason, where=plain(pick.plan, LONGEST_NAME))
        except PlanError as error:
            found.refused.append(plain(error, 300))
            continue
        found.candidates.append(candidate)
        found.reasons[candidate.plan] = pick.reason
    known = {one.plan for one in found.candidates}
    found.candidates += [one for one in engine if one.plan not in known]
    found.candidates = found.candidates[: max(len(engine), len(found.reasons))]
    return found


def _candidate(ranked: RankedCandidates, text: str) -> Candidate:
    study = ranked.study
    plan = study.complete(Plan.parse(text))
    if plan == study.plan:
        raise PlanError("is what runs now", where=plain(text, LONGEST_NAME))
    if broken := "; ".join(one.sentence for one in violations(plan, study.constraints)):
        raise PlanError(broken, where=plain(text, LONGEST_NAME))
    if refused := why_not_launched(study, plan):
        raise PlanError(refused, where=plain(text, LONGEST_NAME))
    listed = {one.plan: one for one in ranked.candidates}
    return listed.get(plan) or evaluate(ranked, plan)


def _against(
    candidate: Candidate, before: Sequence[Candidate], engine: Sequence[Candidate], place: Candidate | None,
    foreign: Sequence[str],
) -> str | None:  # fmt: skip
    if candidate.plan in {one.plan for one in before}:
        return "is picked twice"
    if not fits(candidate.prediction):
        return "does not fit into HBM"
    if place is None:
        return "the engine proposes no more plans than these"
    if candidate.plan == place.plan:
        return None
    if candidate.plan not in {one.plan for one in engine} and _named(candidate.plan, foreign):
        return "text from a file names this plan, and such text is not trusted"
    if not advantages(candidate.prediction, place.prediction):
        return f"the engine predicts it to be better than {place.plan} in nothing"
    return None


def _named(plan: Plan, foreign: Sequence[str]) -> bool:
    """Whether a text has all degrees of the plan's mesh; what else a plan says is filled in from the run."""
    terms = str(Plan(ici=plan.ici, dcn=plan.dcn)).split()
    return any(all(term in text for term in terms) for text in foreign)


def advantages(mine: Prediction, other: Prediction) -> list[str]:
    """In what one plan is predicted to take less than the other."""
    found = []
    for name in ("step_time", "relative_step_time", "communication"):
        own, others = getattr(mine, name), getattr(other, name)
        if own is None or others is None:
            continue
        later = own.high is not None and others.high is not None and own.high < others.high
        if own.value < others.value or later:
            found.append(name)
    if mine.memory and other.memory and mine.memory.total.value < other.memory.total.value:
        found.append("memory")
    return found


def cited_proposals(ranked: RankedCandidates, picked: Sequence[Candidate] | None = None) -> ProposalSet:
    """Proposals with their citations; without them, and saying so, if notes and history cannot be searched."""
    try:
        return _with_options(propose(ranked, cite, picked), ranked)
    except AsapError as error:
        bare = _with_options(propose(ranked, lambda study, plan: (), picked), ranked)
        return bare.model_copy(
            update={"warnings": (*bare.warnings, f"Precedents and principles are left out: {error}")}
        )


def _with_options(proposals: ProposalSet, ranked: RankedCandidates) -> ProposalSet:
    """The proposals with what would take more, where they leave something to wish."""
    if proposals.situation is None or proposals.situation.name not in (*TOO_TIGHT, "well_set", "near_limit"):
        return proposals
    found = options(ranked.study, ranked.incumbent)
    settled = proposals.smallest_fit is not None
    advice = proposals.recommendation if settled else add_options(proposals.recommendation, found)
    return proposals.model_copy(update={"options": found, "recommendation": advice})


LONGEST = 300
_OF_PLANS = (ChangeKind.AXIS, ChangeKind.SETTING)


def ideas_of(
    study: Study,
    incumbent: Prediction | None,
    said: Sequence[UntestedIdea],
    catalogue: Catalogue,
    shown: Callable[[str], str],
) -> tuple[Idea, ...]:
    """At most three of a model, then the engine's: those of the engine are left out where the model names them.

    Args:
        study: the run.
        incumbent: the prediction of what runs.
        said: by the model.
        catalogue: with the records and notes that were returned to it.
        shown: words of the model as they are shown.
    """
    mine = tuple(_idea(study, incumbent, one, catalogue, shown) for one in said[:MOST] if one.change.strip())
    try:
        engines = engine_ideas(study, incumbent)
    except AsapError:
        engines = ()
    named = {record for one in mine for record in one.precedents}
    return (*mine, *(one for one in engines if not named & set(one.precedents)))


def _idea(
    study: Study,
    incumbent: Prediction | None,
    said: UntestedIdea,
    catalogue: Catalogue,
    shown: Callable[[str], str],
) -> Idea:
    standing, bound = bounded(incumbent, said.touches)
    effect = None
    if said.kind in _OF_PLANS and (predicted := _predicted(study, said.change)) is not None:
        standing, bound = Standing.PREDICTED, None
        effect = change("idea", predicted.relative_step_time)
    return Idea(
        title=plain(said.change, LONGEST),
        kind=said.kind,
        change=plain(said.change, LONGEST),
        hypothesis=shown(said.hypothesis),
        refuted_by=plain(said.refuted_by, LONGEST),
        how=plain(said.how, LONGEST),
        standing=standing,
        bound=bound,
        effect=effect,
        precedents=tuple(one for one in said.precedents if one in catalogue.sources),
        by="model",
    )


def _predicted(study: Study, text: str) -> Prediction | None:
    """What the engine expects of an idea that is a plan."""
    try:
        found = expect(study, [read_plan(study, text)])[0]
    except AsapError:
        return None
    return found if found.relative_step_time is not None else None
