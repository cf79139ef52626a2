"""A conversation: the study that was analysed, the evidence stated since, and the current proposals."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from asap.answers.inquiries import Inquiries
from asap.chat.understanding.scene import Context, Scene
from asap.compiler.programs.options import REFERENCE_STEP, CompileOptions
from asap.core.errors import InsufficientEvidenceError
from asap.evidence.anchor import anchored
from asap.evidence.claims import RUN_CLAIMS
from asap.evidence.effect import with_run_claims
from asap.evidence.fact import StatedFact
from asap.experiments import ExperimentStore
from asap.plans import Plan
from asap.proposals.selection.candidate import Candidate
from asap.proposals.selection.choice import COUNT, choose
from asap.proposals.selection.ranked_candidates import RankedCandidates
from asap.proposals.selection.revised_candidates import RevisedCandidates, apply_evidence
from asap.study.study import Study, study_of

_REMEMBERED = 20
"""Answers that may be quoted."""


@dataclass
class Conversation:
    """What replies are computed from.

    Args:
        session: name of the worklog.
        analysed_study: the study as it was analysed, before any evidence.
        picks: plans of the analysis, best first.
        store: where experiments are kept.
        analysed: the candidates of the analysis by plan, with their predictions.
        compile_options: how the analysis compiled plans, and how the chat does.
        refused: facts of the last message that were not taken.
        said: the latest answers, oldest first.
        latest: facts that the last message put on record.
        line: the last message, in English.
    """

    session: str
    analysed_study: Study
    picks: tuple[Plan, ...]
    store: ExperimentStore
    analysed: dict[Plan, Candidate] = field(default_factory=dict, repr=False)
    compile_options: CompileOptions = REFERENCE_STEP
    evidence: list[StatedFact] = field(default_factory=list)
    focus: Plan | None = None
    context: Context = field(default_factory=Context)
    recorded: list[StatedFact] = field(default_factory=list, repr=False)
    said: tuple[str, ...] = field(default=(), repr=False)
    refused: tuple[StatedFact, ...] = ()
    latest: tuple[StatedFact, ...] = ()
    line: str | None = None
    _ranked: RankedCandidates | None = field(default=None, repr=False)
    _opening: tuple[Plan, ...] | None = field(default=None, repr=False)
    _revised_for: tuple[StatedFact, ...] | None = field(default=None, repr=False)
    _revised: RevisedCandidates | None = field(default=None, repr=False)
    _proposals: tuple[Candidate, ...] | None = field(default=None, repr=False)
    _choice_of_the_analysis: list[Plan] | None = field(default=None, repr=False)
    _study: Study | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        """ID of the experiment."""
        return self.analysed_study.experiment.id

    @property
    def study(self) -> Study:
        """The run with what the engineer stated about it."""
        self._refresh()
        assert self._study is not None
        return self._study

    @property
    def study_as_stated(self) -> Study:
        """The run as it was analysed, with another batch, sequence or plan if one was stated, and no measurement."""
        analysed = self.analysed_study
        facts = [item for item in self.evidence if item.claim in RUN_CLAIMS]
        return study_of(with_run_claims(analysed.experiment, facts), analysed.profile) if facts else analysed

    @property
    def scene(self) -> Scene:
        """What the next line is read against."""
        return Scene(
            self.study, tuple(self.order), self.focus, self.context, tuple(self.evidence), self.opening, self.refused,
            self.latest, self.line,
        )  # fmt: skip

    @property
    def opening(self) -> tuple[Plan, ...]:
        """Plans of the proposals as the conversation began, before any evidence, best first."""
        if self._opening is None:
            self._opening = tuple((self.afresh(self.session) if self.evidence else self).order)
        return self._opening

    @property
    def revised(self) -> RevisedCandidates:
        """All candidates after the evidence.

        Raises:
            InsufficientEvidenceError: too little is known to predict any plan.
        """
        self._refresh()
        if self._revised is None:
            ranked = self.rank(self.study)
            found = [candidate.plan for candidate in ranked.candidates]
            stated = {fact.plan: self.analysed[fact.plan] for fact in self.evidence if fact.plan in self.analysed}
            spoken_of = [candidate for plan, candidate in stated.items() if plan not in found]
            ranked = replace(ranked, candidates=[*ranked.candidates, *spoken_of])
            self._revised = apply_evidence(ranked, self.evidence)
        return self._revised

    @property
    def proposals(self) -> tuple[Candidate, ...]:
        """The proposals, best first: those of the analysis, unless evidence changes the engine's choice."""
        self._refresh()
        if self._proposals is None:
            self._proposals = self._choose()
        return self._proposals

    def _choose(self) -> tuple[Candidate, ...]:
        try:
            candidates = self.revised.ranked.candidates
        except InsufficientEvidenceError:
            return ()
        chosen = choose(candidates, self.study.plan)
        if self.evidence and [candidate.plan for candidate in chosen] != self.choice_of_the_analysis:
            return tuple(chosen)
        known = {candidate.plan: candidate for candidate in candidates}
        kept = [known[plan] for plan in self.picks if plan in known]
        return tuple([*kept, *(candidate for candidate in chosen if candidate not in kept)][: len(self.picks) or COUNT])

    @property
    def order(self) -> list[Plan]:
        """Plans of the proposals, best first."""
        return [candidate.plan for candidate in self.proposals]

    @property
    def choice_of_the_analysis(self) -> list[Plan]:
        """What the engine would have picked before any evidence."""
        if self._choice_of_the_analysis is None:
            self._choice_of_the_analysis = []
            with suppress(InsufficientEvidenceError):
                candidates = apply_evidence(self.rank(self.analysed_study), ()).ranked.candidates
                chosen = choose(candidates, self.analysed_study.plan)
                self._choice_of_the_analysis = [candidate.plan for candidate in chosen]
        return self._choice_of_the_analysis

    def rank(self, study: Study) -> RankedCandidates:
        """All candidates of a study; those of the analysed study have the predictions of the analysis."""
        if study is not self.analysed_study:
            return self._rank(study)
        if self._ranked is None or self._ranked.study is not study:
            self._ranked = self._rank(study)
        return replace(self._ranked, candidates=[self.analysed.get(c.plan, c) for c in self._ranked.candidates])

    def _rank(self, study: Study) -> RankedCandidates:
        studies = Inquiries(self.store)
        studies.add(study)
        return studies.candidates(self.id)

    def studies(self) -> Inquiries:
        """The studies that tools read: the run with the evidence applied."""
        studies = Inquiries(self.store)
        self.refresh(studies)
        return studies

    def refresh(self, studies: Inquiries) -> None:
        """Bring studies that tools read up to the evidence."""
        studies.add(self.study)
        with suppress(InsufficientEvidenceError):
            studies.replace_candidates(self.revised.ranked)

    def candidate(self, plan: Plan) -> tuple[int, Candidate] | None:
        """Rank among all candidates, and the candidate; ``None`` if the plan is none."""
        found = enumerate(self.revised.ranked.candidates, 1)
        return next(((rank, candidate) for rank, candidate in found if candidate.plan == plan), None)

    def add_evidence(self, facts: Sequence[StatedFact]) -> None:
        """Add evidence; raises what a study of the amended record raises, and then keeps what it had before.

        A figure that is measured again takes the place of the earlier one.
        """
        before = self.evidence
        kept = [old for old in before if not any(new.supersedes(old) for new in facts)]
        self.evidence = [*kept, *facts]
        try:
            self._refresh()
        except Exception:
            self.evidence = before
            raise
        self.recorded = [*self.recorded, *facts]

    def retract(self, facts: Sequence[StatedFact]) -> None:
        """Take facts back; what they had taken the place of stays gone."""
        self.evidence = [item for item in self.evidence if item not in facts]
        self._refresh()

    def remember(self, said: str) -> None:
        """Keep an answer, which the engineer may quote."""
        self.said = (*self.said, said)[-_REMEMBERED:]

    def number(self, fact: StatedFact) -> int:
        """The number under which a fact is on record in this session, from 1."""
        return len(self.recorded) - self.recorded[::-1].index(fact)

    def afresh(self, session: str) -> "Conversation":
        """The same analysis in a session in which nothing was said yet."""
        return replace(
            self, session=session, evidence=[], recorded=[], refused=(), latest=(), line=None, focus=None,
            context=Context(), said=(), _opening=None, _revised_for=None, _revised=None, _study=None,
        )  # fmt: skip

    def with_evidence(self, supposed: Sequence[StatedFact]) -> "Conversation":
        """A copy with further facts; this one is unchanged."""
        evidence = [*self.evidence, *supposed]
        return replace(self, evidence=evidence, _revised_for=None, _revised=None, _study=None)

    def without_evidence(self, facts: Sequence[StatedFact]) -> "Conversation":
        """A copy without some facts; this one is unchanged."""
        evidence = [item for item in self.evidence if item not in facts]
        return replace(self, evidence=evidence, _revised_for=None, _revised=None, _study=None)

    def _refresh(self) -> None:
        if self._revised_for == tuple(self.evidence):
            return
        study = anchored(self.study_as_stated, self.evidence)
        self._study, self._revised, self._proposals = study, None, None
        self._revised_for = tuple(self.evidence)
