"""The loop over a search space of the user's own: Optuna proposes, runs of the user's command are measured.

The session's record is the only store: the study of Optuna is built from it before each proposal, so that a session
that was killed goes on as if nothing had happened.
"""

import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from asap.core.errors import UsageError, extra_hint
from asap.optimize.by_evaluation import report_of
from asap.optimize.evaluators.run.command import CONFIG, OVERRIDES, Command
from asap.optimize.evaluators.run.evaluator import RunEvaluator
from asap.optimize.loop import optimize
from asap.optimize.outcome import Configuration, Suggestion, Try
from asap.optimize.proposers.refusals import blamed, refused_setting
from asap.optimize.report import OptimizationReport, best_measured, spent_on
from asap.optimize.request import Request, Runs
from asap.optimize.results import ended, repeat, results, shrunk, step_times
from asap.optimize.session import Session, only_session
from asap.optimize.space import Scalar, Space, written
from asap.optimize.stopping import Stopped, StoppingRule, Worth
from asap.proposals.proposal import Overrides
from asap.sharding_memory import readable

if TYPE_CHECKING:
    import optuna

MOST_LOST = 2
"""Times that a configuration which was lost is proposed again. Judgement: how long a session tries."""
STARTING = 0.25
"""Share of the budget drawn at random before the tree of Parzen estimators can learn. Judgement: the order of tries."""
_DRAWS, _RANDOM_DRAWS = 100, 2000
"""Draws after which no new configuration is taken to be left. Judgement: when a session ends."""


class SpaceRequest(Runs):
    """A space, and the command that is run for each of its configurations."""

    space: Space
    evaluate: Literal["run"] = "run"
    ideas: tuple[()] = ()

    @cached_property
    def command_of_space(self) -> Command:
        """The command; raises :class:`UsageError` where a setting would enter nowhere."""
        places = tuple(name for name in self.space.settings if f"{{{name}}}" in (self.command or ""))
        found = self.filled_command(places)
        others = [name for name, each in self.space.settings.items() if not each.environment and name not in places]
        if others and OVERRIDES not in found.start and CONFIG not in found.start:
            hint = f"write {{{others[0]}}} or {{overrides}} into the command, or environment = true into the file"
            raise UsageError(f"the setting {others[0]} enters nowhere", where="--space", hint=hint)
        return found

    def overrides(self, configuration: Configuration) -> Overrides:
        """What a configuration sets beside the places that the command has: words, and environment variables."""
        values = self.space.read(configuration)
        exported = {name for name, each in self.space.settings.items() if each.environment}
        exports = [f"export {name}={shlex.quote(written(values[name]))}" for name in values if name in exported]
        placed = {*self.command_of_space.places, *exported}
        words = shlex.join(f"{name}={written(value)}" for name, value in values.items() if name not in placed)
        return Overrides(text=words, exports=tuple(exports))

    def evaluator(self, session: str, report: Callable[[str], None], timed: Sequence[float] = ()) -> RunEvaluator:
        """What evaluates, as :meth:`Request.evaluator`; raises like :attr:`command_of_space`, or without Optuna."""
        _optuna()
        return RunEvaluator(
            command=self.command_of_space, session=session, overrides=self.overrides, tokens=None, limits=self.limits,
            folder=Path(self.folder), report=report, parallel=self.parallel, timed=list(timed),
        )  # fmt: skip

    def lines(self, configuration: Configuration) -> str:
        """What to paste: exports, and the command with the values in their places."""
        return self.command_of_space.pasted(self.overrides(configuration), configuration)


@dataclass(frozen=True)
class OptunaProposer:
    """Proposes what Optuna's tree-structured Parzen estimator draws, and repeats what noise leaves open.

    What the engine predicts plays no part: a setting of any program has no model.

    Args:
        space: of the user's own.
        budget: tries; ``None`` where it is a time.
    """

    space: Space
    budget: int | None = None

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next configuration; ``None`` where nothing new is found."""
        if not tries and self.space.now is not None:
            return Suggestion(configuration=self.space.now, why="what runs now, to compare with")
        if lost := self._lost(tries):
            return Suggestion(configuration=lost, why="again: it was lost")
        if found := repeat(tries, self.space.now, lambda: shrunk(tries)[0].configuration):
            return Suggestion(configuration=found[0], why=found[1])
        seen, blame = {each.configuration for each in tries}, blamed(tries, self._said)
        for study, draws, why in self._studies(tries):
            for _ in range(draws):
                values = self._drawn(study.ask())
                if self.space.broken(values) is not None or (text := self.space.text(values)) in seen:
                    continue
                if not refused_setting(self._said(text), blame):
                    return Suggestion(configuration=text, why=why)
        if not tries:
            raise UsageError("no configuration keeps the constraints", where="--space")
        return None

    def _said(self, configuration: Configuration) -> dict[str, str]:
        return {name: written(value) for name, value in self.space.read(configuration).items()}

    def _lost(self, tries: Sequence[Try]) -> Configuration | None:
        last = {each.configuration: each.outcome for each in tries}
        counts = [each.configuration for each, outcome in ended(tries) if outcome.status == "lost"]
        again = (
            c for c in counts if counts.count(c) <= MOST_LOST and (o := last[c]) is not None and o.status == "lost"
        )
        return next(again, None)

    def _studies(self, tries: Sequence[Try]) -> "Iterator[tuple[optuna.Study, int, str]]":
        """One that learnt from the tries, and one that draws at random."""
        optuna = _optuna()
        starting = max(3, round(STARTING * self.budget)) if self.budget else 10
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            parzen = optuna.samplers.TPESampler(
                seed=len(tries), n_startup_trials=starting, multivariate=True, group=True, constant_liar=True
            )
        study = optuna.create_study(sampler=parzen)
        states, timed = optuna.trial.TrialState, {each.configuration: each.step_time_s for each in results(tries)}
        for each in {each.configuration: each for each in tries}.values():
            state = states.PRUNED if each.outcome else states.RUNNING
            values = self.space.read(each.configuration)
            study.add_trial(
                optuna.trial.create_trial(
                    state=states.COMPLETE if each.configuration in timed else state,
                    value=timed.get(each.configuration),
                    params={name: self.space.settings[name].told(value) for name, value in values.items()},
                    distributions={name: self.space.settings[name].distribution for name in values},
                )
            )
        why = "drawn at random, to learn from" if len(timed) < starting else "likely to be fast, by what was measured"
        yield study, _DRAWS, why
        anywhere = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=len(tries)))
        yield anywhere, _RANDOM_DRAWS, "drawn at random: nothing else is new"

    def _drawn(self, trial: "optuna.Trial") -> dict[str, Scalar]:
        values = dict[str, Scalar]()
        for name, setting in self.space.settings.items():
            if self.space.active(name, values):
                values[name] = setting.drawn(trial, name)
        return values


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        hint = extra_hint("optuna")
        raise UsageError("a space of your own needs Optuna", where="--space", hint=hint) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def optimize_space(
    request: SpaceRequest,
    session: Session,
    show: Callable[[OptimizationReport, Worth | None], None] = lambda report, worth: None,
    report: Callable[[str], None] = lambda line: None,
) -> OptimizationReport:
    """Run the loop over a space, from where the session stands to its end.

    Raises:
        UsageError: a setting enters nowhere, Optuna is missing, or another session measures the same space.
    """
    rule = StoppingRule(evaluations=request.budget.evaluations, seconds=request.budget.seconds)
    proposer = OptunaProposer(request.space, request.budget.evaluations)
    with only_session(f"space-{request.space.name}"):
        stopped = optimize(
            session, proposer, request.evaluator(session.name, report, step_times(session.tries)), rule,
            lambda session, suggestion, worth: show(report_of_space(request, session), worth),
        )  # fmt: skip
    return report_of_space(request, session, stopped)


def open_any(name: str) -> tuple[SpaceRequest | Request, Session]:
    """A session on record, of a space or of an experiment; raises like :meth:`Session.resume`."""
    session = Session.resume(name)
    with readable(name):
        kind = SpaceRequest if "space" in session.settings else Request
        return kind.model_validate(session.settings), session


def report_of_any(name: str) -> OptimizationReport:
    """The report of a session on record as it stands; raises like :func:`open_any`."""
    request, session = open_any(name)
    return report_of_space(request, session) if isinstance(request, SpaceRequest) else report_of(request, session)


def report_of_space(request: SpaceRequest, session: Session, stopped: Stopped | None = None) -> OptimizationReport:
    """The report of a session as it stands."""
    tries = session.tries
    return OptimizationReport(
        experiment=request.space.name, session=session.name, evaluator="run", considered=None,
        tries=tuple(tries), best=best_measured(tries, shrunk(tries), (), request.space.now, request.lines),
        stopped=stopped or session.stopped, spent=spent_on(tries),
    )  # fmt: skip
