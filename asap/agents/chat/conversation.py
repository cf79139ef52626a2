"""A conversation: the study that was analysed, the evidence stated since, and the proposals as they stand.

All of it is restored from the worklog of the session, so that any process can go on where another one stopped.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from asap.agents.chat.evidence import ON_RECORD, Evidence, Weighed, amended, weigh
from asap.agents.compiled_note import compiled_by
from asap.agents.desk import Desk
from asap.compiler.choice import REFERENCE, Choice
from asap.core.errors import BadInputError, InsufficientEvidenceError, NotFoundError
from asap.diagnosis.study import Study, open_study, study_of
from asap.experiments import Experiment, ExperimentStore
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.propose import Field
from asap.proposals.ranking import COUNT, Candidate, choose
from asap.sharding_memory import Kind, Record, read_session, sessions

EVIDENCE = "evidence"
REPLY = "reply"


@dataclass
class Conversation:
    """What a reply looks at.

    Args:
        session: name of the worklog.
        opened: the study as it was analysed.
        picks: plans of the analysis, best first.
        store: where experiments are kept.
        analysed: the plans of the analysis with what it expected of them.
        compile_by: whose training step the analysis had compiled, and a chat has.
    """

    session: str
    opened: Study
    picks: tuple[Plan, ...]
    store: ExperimentStore
    analysed: dict[Plan, Candidate] = field(default_factory=dict, repr=False)
    compile_by: Choice = REFERENCE
    evidence: list[Evidence] = field(default_factory=list)
    focus: Plan | None = None
    _seen: tuple[Evidence, ...] | None = field(default=None, repr=False)
    _weighed: Weighed | None = field(default=None, repr=False)
    _study: Study | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        """ID of the experiment."""
        return self.opened.experiment.id

    @property
    def study(self) -> Study:
        """The run with what the engineer stated about it."""
        self._refresh()
        assert self._study is not None
        return self._study

    @property
    def weighed(self) -> Weighed:
        """All candidates after the evidence.

        Raises:
            InsufficientEvidenceError: too little is known to predict any plan.
        """
        self._refresh()
        if self._weighed is None:
            self._weighed = weigh(self._survey(self.study), self.evidence)
        return self._weighed

    @property
    def standing(self) -> tuple[Candidate, ...]:
        """The proposals, best first: those of the analysis for as long as evidence leaves the engine's choice alone."""
        try:
            field_ = self.weighed.survey
        except InsufficientEvidenceError:
            return ()
        chosen = tuple(choose(field_.candidates, self.study.plan))
        if self.evidence and [candidate.plan for candidate in chosen] != self._choice_of_the_analysis:
            return chosen
        known = {candidate.plan: candidate for candidate in field_.candidates}
        kept = [known[plan] for plan in self.picks if plan in known]
        return tuple([*kept, *(candidate for candidate in chosen if candidate not in kept)][: len(self.picks) or COUNT])

    @cached_property
    def _choice_of_the_analysis(self) -> list[Plan]:
        """What the engine would have picked before any evidence."""
        try:
            found = weigh(self._survey(self.opened), ()).survey
        except InsufficientEvidenceError:
            return []
        return [candidate.plan for candidate in choose(found.candidates, self.opened.plan)]

    def _survey(self, study: Study) -> Field:
        """All candidates; those of the analysis as it saw them, compiled too, unless the run is another one now."""
        desk = Desk(self.store)
        desk.put(study)
        found = desk.survey(self.id)
        if study is not self.opened:
            return found
        return replace(found, candidates=[self.analysed.get(c.plan, c) for c in found.candidates])

    def desk(self) -> Desk:
        """A desk with the run as it stands: tools see what the evidence has made of it."""
        desk = Desk(self.store)
        desk.put(self.study)
        with suppress(InsufficientEvidenceError):
            desk.lay(self.weighed.survey)
        return desk

    def candidate(self, plan: Plan) -> tuple[int, Candidate] | None:
        """Rank among all candidates, and the candidate; ``None`` if the plan is none."""
        found = enumerate(self.weighed.survey.candidates, 1)
        return next(((rank, candidate) for rank, candidate in found if candidate.plan == plan), None)

    def take(self, said: Sequence[Evidence]) -> None:
        """Add evidence; raises what a study of the amended record raises, and then holds what it held before."""
        before = list(self.evidence)
        self.evidence += said
        try:
            self._refresh()
        except Exception:
            self.evidence = before
            raise

    def with_evidence(self, supposed: Sequence[Evidence]) -> "Conversation":
        """A copy that takes facts for granted; this one stays as it is."""
        evidence = [*self.evidence, *supposed]
        return replace(self, evidence=evidence, _seen=None, _weighed=None, _study=None)

    def _refresh(self) -> None:
        if self._seen == tuple(self.evidence):
            return
        facts = [item for item in self.evidence if item.claim in ON_RECORD]
        study = study_of(amended(self.opened.experiment, facts), self.opened.profile) if facts else self.opened
        self._study, self._weighed, self._seen = study, None, tuple(self.evidence)


def open_conversation(
    target: str,
    store: ExperimentStore,
    model: str | None = None,
    session: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Conversation:
    """Go on with a session of an experiment, the latest by default; where there is none, analyse it first.

    Raises:
        AsapError: what :func:`asap.agents.run.analyze` or :func:`restore` raises.
    """
    found = session or latest_session(target)
    if found is None:
        from asap.agents.run import analyze

        found = analyze(target, store=store, model=model, progress=progress).analysis.session
    return restore(found, store)


def latest_session(experiment: str) -> str | None:
    """The newest session that analysed an experiment to its end."""
    for name in reversed(sessions()):
        records = read_session(name)
        if _analysis(records, experiment) is not None and not _is_replay(records):
            return name
    return None


def restore(session: str, store: ExperimentStore) -> Conversation:
    """The conversation that a worklog holds.

    Raises:
        NotFoundError: there is no such session, or no analysis in it.
        BadInputError: what it holds cannot be read.
    """
    return restore_from(read_session(session), session, store)


def restore_from(records: Sequence[Record], session: str, store: ExperimentStore) -> Conversation:
    """The conversation in records; raises like :func:`restore`."""
    index = _analysis(records)
    if index is None:
        raise NotFoundError("holds no analysis to talk about", where=session, hint="asap analyze EXPERIMENT")
    try:
        opened = Experiment.model_validate(_last_opened(records[:index]))
        output = records[index].payload["output"]
        analysed = [_candidate(proposal) for proposal in output["proposals"]]
        picks = tuple(candidate.plan for candidate in analysed)
        target = opened.id if store.has(opened.id) else opened.profile_path or opened.id
        study = open_study(target, store, lambda _: opened)
        known, compile_by = {one.plan: one for one in analysed}, compiled_by(records[:index]) or REFERENCE
        conversation = Conversation(session, study, picks, store, known, compile_by)
        for record in records[index:]:
            _remember(conversation, record)
    except (ValidationError, KeyError, TypeError) as error:
        raise BadInputError("its records cannot be read as a conversation", where=session) from error
    return conversation


def _analysis(records: Sequence[Record], experiment: str | None = None) -> int | None:
    for index in range(len(records) - 1, -1, -1):
        payload = records[index].payload
        if records[index].kind is Kind.RESULT and payload.get("node") == "analysis":
            known = payload["output"]["experiment"]["id"]
            return index if experiment in (None, known) else None
    return None


def _is_replay(records: Sequence[Record]) -> bool:
    return any(record.kind is Kind.NOTE and record.payload.get("event") == "replay" for record in records[:1])


def _candidate(proposal: dict[str, Any]) -> Candidate:
    return Candidate(Prediction.model_validate(proposal["prediction"]), proposal["score"])


def _last_opened(records: Sequence[Record]) -> object:
    notes = (r.payload for r in reversed(records) if r.kind is Kind.NOTE and r.payload.get("event") == "opened")
    return next(notes, {})["experiment"]


def _remember(conversation: Conversation, record: Record) -> None:
    payload = record.payload
    if record.kind is Kind.NOTE and payload.get("event") == EVIDENCE:
        conversation.take([Evidence.model_validate(payload["evidence"])])
    elif record.kind is Kind.RESULT and payload.get("node") == REPLY and payload["output"].get("focus"):
        conversation.focus = Plan.model_validate(payload["output"]["focus"])
