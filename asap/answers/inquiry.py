"""One run, opened once: its study, the facts stated since, and the candidates and proposals that follow from both."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from asap.answers.plan_names import in_full, of_micro_batch, without_micro_batch
from asap.core.errors import AsapError, InsufficientEvidenceError, NotFoundError
from asap.evidence.anchor import anchored
from asap.evidence.effect import apply_outcomes, apply_run_claims
from asap.evidence.fact import RUN_CLAIMS, Origin, StatedFact
from asap.evidence.judgement import Judgement
from asap.evidence.memory_judgement import judge_study
from asap.experiments import ExperimentStore
from asap.plans import Plan
from asap.plans.plan import SETTINGS
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.proposal_set import ProposalSet
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import (
    RankedCandidates,
    RevisedCandidates,
    apply_evidence,
    rank_candidates,
)
from asap.proposals.selection.candidate import Candidate
from asap.proposals.selection.choice import COUNT
from asap.study.study import Study, read_plan, study_of

NOW = ("now", "0", "current", "start")


@dataclass
class Inquiry:
    """What queries are answered from.

    Args:
        analysed: the study before any fact was stated.
        store: where experiments are kept.
        picks: plans that an analysis proposed, best first; by default the engine's choice.
        known: candidates of that analysis by plan, such as those that were compiled.
        facts: stated since, oldest first.
        recorded: all that ever were, in the order of their numbers.
        origin: where what is stated now comes from.
    """

    analysed: Study
    store: ExperimentStore = field(default_factory=ExperimentStore)
    picks: tuple[Plan, ...] = ()
    known: dict[Plan, Candidate] = field(default_factory=dict, repr=False)
    facts: tuple[StatedFact, ...] = ()
    recorded: tuple[StatedFact, ...] = ()
    origin: Origin = "typed"
    compiled: int = 0
    _rankings: dict[int, RankedCandidates] = field(default_factory=dict, repr=False)
    _studies: dict[tuple[StatedFact, ...], Study] = field(default_factory=dict, repr=False)
    _revisions: dict[tuple[StatedFact, ...], RevisedCandidates] = field(default_factory=dict, repr=False)

    _judgements: dict[tuple[StatedFact, ...], Judgement | None] = field(default_factory=dict, repr=False)

    @property
    def id(self) -> str:
        """ID of the experiment."""
        return self.analysed.experiment.id

    @property
    def study(self) -> Study:
        """The run with what was stated about it."""
        if self.facts not in self._studies:
            self._studies[self.facts] = self._with_facts()
        return self._studies[self.facts]

    def _with_facts(self) -> Study:
        if not self.facts:
            return self.analysed
        of_run, base = [fact for fact in self.facts if fact.claim in RUN_CLAIMS], self.analysed
        if of_run:
            base = study_of(apply_run_claims(base.experiment, of_run), base.profile, base.recording)
        found = apply_outcomes(anchored(base, self.facts), self.facts)
        return found if found is self.analysed else replace(found, preferences=self.analysed.preferences)

    @property
    def ranking(self) -> RankedCandidates:
        """All candidates before a fact rules any out; without precedents where the history cannot be searched.

        Raises:
            InsufficientEvidenceError: too little is known to predict any plan.
        """
        study = self.study
        if id(study) not in self._rankings:
            self._rankings[id(study)] = rank_study(study)
        found = self._rankings[id(study)]
        if study is not self.analysed or not self.known:
            return found
        return replace(found, candidates=[self.known.get(one.plan, one) for one in found.candidates])

    def replace_ranking(self, ranked: RankedCandidates) -> None:
        """Put other candidates in the place of all that were ranked, such as those that were compiled."""
        self._rankings[id(self.study)] = ranked
        self._revisions.pop(self.facts, None)

    @property
    def revised(self) -> RevisedCandidates:
        """The candidates after the facts, and those that a fact rules out; raises like :attr:`ranking`."""
        if self.facts not in self._revisions:
            self._revisions[self.facts] = apply_evidence(self._with_spoken_of(self.ranking), self.facts)
        return self._revisions[self.facts]

    def _with_spoken_of(self, ranked: RankedCandidates) -> RankedCandidates:
        """With candidates of the analysis that a fact is of."""
        listed = {self.study.plan, *(one.plan for one in ranked.candidates)}
        named = dict.fromkeys(fact.plan for fact in self.facts if fact.plan in self.known and fact.plan not in listed)
        return replace(ranked, candidates=[*ranked.candidates, *(self.known[plan] for plan in named if plan)])

    @property
    def candidates(self) -> list[Candidate]:
        """All candidates in their order; empty where none can be predicted."""
        with suppress(InsufficientEvidenceError):
            return self.revised.ranked.candidates
        return []

    @property
    def proposals(self) -> tuple[Candidate, ...]:
        """At most three, best first: those of the analysis, unless facts change the engine's choice."""
        candidates, chosen = self.candidates, []
        with suppress(InsufficientEvidenceError):
            chosen = self.revised.ranked.chosen
        plans = [one.plan for one in chosen]
        if not self.picks or (self.facts and plans != list(self.without_facts().order)):
            return tuple(chosen)
        listed = {one.plan: one for one in candidates}
        kept = [listed[plan] for plan in self.picks if plan in listed]
        return tuple([*kept, *(one for one in chosen if one not in kept)][: len(self.picks) or COUNT])

    @property
    def order(self) -> tuple[Plan, ...]:
        """Plans of the proposals, best first."""
        return tuple(one.plan for one in self.proposals)

    @property
    def proposed(self) -> ProposalSet | None:
        """The proposals after the facts, with what decides the advice; ``None`` where no plan can be predicted."""
        with suppress(InsufficientEvidenceError):
            return propose(self.revised.ranked, lambda study, plan: (), self.proposals)
        return None

    @property
    def advice(self) -> str | None:
        """What to run first, or that what runs is kept; ``None`` where no plan can be predicted."""
        return found.recommendation.statement if (found := self.proposed) else None

    def candidate(self, plan: Plan) -> tuple[int, Candidate] | None:
        """Rank among all candidates, and the candidate; ``None`` if the plan is none."""
        return next(((rank, one) for rank, one in enumerate(self.candidates, 1) if one.plan == plan), None)

    def plan(self, name: str) -> Plan:
        """The plan that a rank, ``now`` or a text names; a rank or ``now`` before a text is what the text changes.

        Raises:
            NotFoundError: there is no such proposal.
            InsufficientEvidenceError: the plan that runs is not known.
            PlanError: it is no plan, or breaks a rule.
        """
        text, size = without_micro_batch(re.sub(r"^proposal\s*", "", name.strip(), flags=re.IGNORECASE))
        if size is not None:
            sized = of_micro_batch(self.plan(text or "now"), size, self.study.experiment.workload.global_batch)
            return read_plan(self.study, str(sized))
        first, _, rest = text.partition(" ")
        base = self.now if first.lower() in NOW else self._proposed(int(first)) if first.isdigit() else None
        if base is not None and not rest:
            return base
        now = self.study.plan
        named = in_full(rest, base, now, changes=True) if base else in_full(text, now, now, changes=False)
        return read_plan(self.study, named)

    @property
    def now(self) -> Plan:
        """The plan that runs.

        Raises:
            InsufficientEvidenceError: it is not known.
        """
        if self.study.plan is None:
            raise InsufficientEvidenceError("the plan that runs is not known", where=self.id, hint="name a plan")
        return self.study.plan

    def _proposed(self, rank: int) -> Plan:
        order = self.order
        if not 0 < rank <= len(order):
            has = f"there are {len(order)}" if order else "nothing is proposed"
            hint = "name a plan: data=32 model=4" if order else self.advice or "`run` says what is known"
            raise NotFoundError(f"no such proposal: {has}", where=str(rank), hint=hint)
        return order[rank - 1]

    def predictions(self, plans: Sequence[Plan]) -> list[Prediction]:
        """Predictions of plans after the facts; raises like :func:`asap.prediction.predict_study.expect`."""
        listed = {one.plan: one.prediction for one in self.candidates}
        if self.study.plan is not None and self.incumbent is not None:
            listed[self.study.plan] = self.incumbent
        lacking = [plan for plan in plans if plan not in listed]
        found = expect(self.study, lacking) if lacking else []
        for one in found:
            self._refuse_settings_by_ratio(one)
        listed |= dict(zip(lacking, found, strict=True))
        return [listed[plan] for plan in plans]

    def _refuse_settings_by_ratio(self, found: Prediction) -> None:
        """Ratios of degrees say nothing of a setting beside the mesh."""
        now, plan = self.study.plan, found.plan
        if found.method != "profile_ratios" or now is None:
            return
        differs = [name for name in SETTINGS if getattr(plan, name) != getattr(now, name)]
        if differs:
            raise InsufficientEvidenceError(
                f"what {' and '.join(differs)} would do depends on the architecture, which is not on record",
                where=self.id, hint="`asap experiments add ID --config FILE --hardware NAME --profile PATH`",
            )  # fmt: skip

    @property
    def judgement(self) -> Judgement | None:
        """The measured step of what runs beside what the model expects; ``None`` where there is nothing to judge."""
        if self.facts not in self._judgements:
            self._judgements[self.facts] = judge_study(self.study)
        return self._judgements[self.facts]

    @property
    def incumbent(self) -> Prediction | None:
        """The prediction of what runs; ``None`` where it is not known or cannot be predicted."""
        with suppress(InsufficientEvidenceError):
            return self.revised.ranked.incumbent
        return None

    def record(self, facts: Iterable[StatedFact]) -> tuple[StatedFact, ...]:
        """Put facts on record; returns those that are new. A figure that is measured again replaces the earlier one.

        Raises:
            AsapError: the record cannot be read with them; it is then as before.
        """
        new, before = tuple(fact for fact in facts if fact not in self.facts), self.facts
        kept = [old for old in before if not any(fact.supersedes(old) for fact in new)]
        self.facts = (*kept, *new)
        try:
            _ = self.study
        except Exception:
            self.facts = before
            raise
        self.recorded = (*self.recorded, *new)
        return new

    def retract(self, facts: Iterable[StatedFact]) -> None:
        """Take facts back."""
        gone = set(map(id, facts))
        self.facts = tuple(fact for fact in self.facts if id(fact) not in gone)

    def number(self, fact: StatedFact) -> int:
        """The number of a fact on record, from 1."""
        return len(self.recorded) - self.recorded[::-1].index(fact)

    def fact(self, number: int) -> StatedFact:
        """The fact on record under a number.

        Raises:
            NotFoundError: there is none, or it was taken back.
        """
        for fact in self.facts:
            if self.number(fact) == number:
                return fact
        raise NotFoundError("no such fact on record", where=str(number), hint="`facts` lists them")

    def without_facts(self) -> "Inquiry":
        """The same run before anything was stated, with what was already worked out."""
        return replace(self, facts=(), recorded=())

    def with_study(self, study: Study) -> "Inquiry":
        """Another study of the same run: a changed batch, other hardware."""
        return Inquiry(study, self.store)


def rank_study(study: Study) -> RankedCandidates:
    """All candidates of a study, without precedents where the history cannot be searched.

    Raises:
        InsufficientEvidenceError: too little is known to predict any plan.
    """
    try:
        return rank_candidates(study)
    except InsufficientEvidenceError:
        raise
    except AsapError:
        return rank_candidates(study, priors={})
