"""What was asked for: everything that a session needs to go on after a kill, as it is kept in its log."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.errors import UsageError
from asap.core.text import plain
from asap.core.units import format_seconds, significant
from asap.evidence.readings import run_of
from asap.experiments import Experiment, ExperimentStore
from asap.optimize.evaluators.run.command import Command
from asap.optimize.evaluators.run.evaluator import RunEvaluator, RunLimits
from asap.optimize.evaluators.run.settings import asked_settings, decisive
from asap.optimize.ideas import add_idea, plan_in, split_idea
from asap.optimize.loop import Evaluator, SeveralAtOnce
from asap.optimize.outcome import Configuration
from asap.optimize.stopping import Machine, StoppingRule
from asap.prediction.predict_study import expect
from asap.proposals.launch import overrides_of
from asap.proposals.proposal import Overrides
from asap.proposals.test_worth import WARM_UP_STEPS
from asap.proposals.typed_change import add_typed_change
from asap.stacks.launchers import stack_of
from asap.stacks.registry import spec_of
from asap.study.open_study import reopen_study
from asap.study.study import Preferences, Study

How = Literal["model", "compiler", "run"]
_BUDGET = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) *(s|m|min|h)?", re.ASCII)
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}  # of each unit


class Budget(BaseModel, frozen=True):
    """Most tries, or most time."""

    evaluations: int | None = None
    seconds: float | None = None

    @property
    def phrase(self) -> str:
        """``at most 8 times``."""
        if self.evaluations is not None:
            return f"at most {self.evaluations} times"
        return f"for at most {format_seconds(self.seconds or 0.0)}"

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """``8`` tries, or ``90s``, ``30m``, ``2h``.

        Raises:
            UsageError: it is neither.
        """
        found = _BUDGET.fullmatch(text.strip())
        if not found or float(found[1]) <= 0 or (found[2] is None and "." in found[1]):
            hint = "8 for so many evaluations, or 30m, 2h for so much time"
            raise UsageError(f"{plain(text, 40)!r} is not a budget", where="--budget", hint=hint)
        if found[2] is None:
            return cls(evaluations=int(found[1]))
        return cls(seconds=float(found[1]) * _SECONDS[found[2]])


class Runs(BaseModel):
    """How tries of a command are started, and how much may be spent on them."""

    model_config = ConfigDict(frozen=True)

    budget: Budget
    command: str | None = None
    wait_for: str | None = None
    cancel: str | None = None
    steps_from: str | None = None
    config: str | None = Field(default=None, description="configuration file that each try has a copy of")
    folder: str = "."
    steps: int = 20
    try_seconds: float = 3600.0
    parallel: int = Field(default=1, ge=1, description="tries that run at once")

    def filled_command(self, places: tuple[str, ...] = ()) -> Command:
        """The command with its places, those of settings of a user's own space among them.

        Raises:
            UsageError: there is none, or with a file that it has no place for.
        """
        if self.command is None:
            raise UsageError("a run needs a command", where="--command", hint="'./train.sh {overrides}'")
        config = Path(self.folder, self.config) if self.config else None
        return Command(self.command, self.wait_for, self.cancel, self.steps_from, config, places)

    @property
    def limits(self) -> RunLimits:
        """When a try has shown enough."""
        return RunLimits(self.steps, self.try_seconds)


class Request(Runs):
    """What is optimized of an experiment, by what it is evaluated, and how much may be spent."""

    experiment: Experiment
    evaluate: How
    model: str | None = Field(default=None, description="language model that proposes; null: the built-in proposer")
    train_step: str | None = None
    maxtext: bool = False
    python: str = ""
    engine: str = "local"
    allowed: tuple[str, ...] = ()
    steps_to_go: int | None = None
    prices: dict[str, float] = Field(default_factory=dict, description="of a chip-hour, by chip")
    currency: str = "USD"
    ideas: tuple[str, ...] = Field(default=(), description="changes beside the plan to try, as they are typed")

    @cached_property
    def study(self) -> Study:
        """The run as it was when the session began."""
        preferences = Preferences(frozenset(self.allowed), self.steps_to_go, self.prices, self.currency)
        return replace(reopen_study(self.experiment, ExperimentStore()), preferences=preferences)

    def evaluator(
        self, session: str, report: Callable[[str], None], timed: Sequence[float] = ()
    ) -> Evaluator | SeveralAtOnce:
        """What evaluates; ``timed`` are seconds of a step of tries that ran before the session was resumed.

        Raises:
            UsageError: a run without a command, or with a file that its stack does not take.
            PlanError: the launcher has no words for an idea.
        """
        if self.evaluate == "compiler":
            return self._compiler(report)
        command = self.filled_command()
        workload, slice_ = self.study.experiment.workload, self.study.slice
        table = spec_of(stack_of(workload.framework), self.study.experiment.hyperparameters)
        if command.config and table is not None and table.form == "switches":
            reason, hint = f"{workload.framework} takes arguments, not a file", "write {overrides} into the command"
            raise UsageError(reason, where="--template", hint=hint)
        for idea in self.ideas if self.study.plan else ():
            self.overrides(add_idea(str(self.study.plan), idea))
        tokens = workload.tokens
        return RunEvaluator(
            command=command, session=session, overrides=self.overrides, limits=self.limits, folder=Path(self.folder),
            tokens=tokens / slice_.devices if tokens and slice_ else None, report=report, parallel=self.parallel,
            on_record=decisive(self.study.experiment.hyperparameters), objection=self._objection, timed=list(timed),
        )  # fmt: skip

    def _objection(self, configuration: Configuration, seconds: float) -> str | None:
        """Why a step of a configuration cannot have been so short; a long one is what the user's machine takes."""
        run = run_of(self.study)
        return replace(run, plan=plan_in(configuration)).bounds.too_short(seconds) if run else None

    def _compiler(self, report: Callable[[str], None]) -> SeveralAtOnce:
        from asap.compiler.programs.options import CompileLimits, CompileOptions
        from asap.optimize.evaluators.compiler import CompilerEvaluator

        options = CompileOptions(
            train_step=self.train_step, maxtext=self.maxtext, python=self.python, engine=self.engine,
            limits=CompileLimits(seconds=self.try_seconds),
        )  # fmt: skip
        return CompilerEvaluator(self.study, options, report)

    def rule(self, modelled_s: float) -> StoppingRule:
        """When it ends. ``modelled_s``: of a step, by the model."""
        slice_ = self.study.slice
        chips = slice_.chips if slice_ else 0
        price = self.prices.get(slice_.chip.name) if slice_ else None
        on_machine = self.evaluate == "run"
        guess = min(modelled_s * (self.steps + WARM_UP_STEPS), self.try_seconds) if on_machine else 0.0
        return StoppingRule(
            self.budget.evaluations, self.budget.seconds, self.steps_to_go, training_chips=chips,
            machine=Machine(chips, price, self.currency) if on_machine else Machine(),
            first_guess_s=guess if math.isfinite(guess) else 0.0,
        )  # fmt: skip

    @property
    def cost(self) -> str:
        """`` (about 23 chip-hours beside start-up)``: of all tries, where the model knows what runs now."""
        steps = [each.step_time for each in expect(self.study, [self.study.plan])] if self.study.plan else []
        rule = self.rule(steps[0].value if steps and steps[0] else math.inf)
        hours = rule.machine.chips * (rule.seconds or rule.first_guess_s * (rule.evaluations or 0)) / 3600
        how, beside = ("at most", "") if rule.seconds else ("about", " beside start-up")
        return f" ({how} {significant(hours, 2)} chip-hours{beside})" if hours else ""

    def overrides(self, configuration: Configuration) -> Overrides:
        """What to paste for a configuration.

        Raises:
            PlanError: the launcher has no words for it.
        """
        found, idea = overrides_of(self.study, plan_in(configuration)), split_idea(configuration)[1]
        return add_typed_change(found, idea) if idea else found

    def asked(self, configuration: Configuration) -> dict[str, str]:
        """The settings that a configuration gives the launcher; raises like :meth:`overrides`."""
        return asked_settings(self.overrides(configuration))
