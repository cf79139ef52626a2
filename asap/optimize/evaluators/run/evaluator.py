"""Evaluates a configuration by running it: until enough steps are timed, it ends, or its time is over."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from asap.core.errors import AsapError, ConfigError
from asap.core.feedback import Feedback
from asap.core.text import plain
from asap.core.units import Provenance, format_percent, format_seconds
from asap.diagnosis.diagnose import diagnose
from asap.experiments import Experiment
from asap.experiments.observed import MeasuredStep, steady_step
from asap.experiments.trackers.source import read_tracked
from asap.optimize.evaluators.run.command import Command, name_of_try
from asap.optimize.evaluators.run.log import RunLog, why_it_died
from asap.optimize.evaluators.run.process import Process
from asap.optimize.evaluators.run.settings import asked_settings, left_out
from asap.optimize.outcome import Code, Configuration, Outcome, Status, feedback
from asap.profiles import Profile
from asap.proposals.proposal import Overrides


def tracked_step(target: str) -> MeasuredStep | Feedback:
    """The steady steps of ``tensorboard:DIR`` or ``mlflow:RUN_ID``, or why there are none."""
    try:
        measured = read_tracked(target, Experiment(id="try")).measured
    except AsapError as error:
        return feedback(Code.NO_STEP_TIME, plain(f"{target}: {error.message}", 200), error.hint)
    if measured is None or measured.steps is None:
        return feedback(Code.NO_STEP_TIME, plain(f"{target} has too few step times", 200))
    return measured


_WORTH_TELLING = 0.1
"""Share of the time that one cause has to cost to be worth a word. Judgement: what is printed."""
_CODES: dict[str, Code] = dict.fromkeys(("idle_device", "host_bound"), Code.LAUNCH_BOUND)
_CODES["communication_bound"] = Code.EXPOSED_COLLECTIVE
"""Code of a finding, by its rule."""


def profile_in(place: Path) -> Profile | None:
    """The newest profile in a folder; ``None`` where there is none that can be read."""
    from asap.profiles.locate import read_profile

    found = max(place.rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime, default=None)
    try:
        return read_profile(found.parent) if found else None
    except AsapError:
        return None


def profiled_step(profile: Profile) -> MeasuredStep | None:
    """The steps of a profile."""
    kpis = profile.kpis
    if not kpis.step_time_s:
        return None
    return MeasuredStep(
        seconds=kpis.step_time_s, deviation=kpis.step_time_stddev_s, steps=kpis.steps, source="the profile of the try"
    )


def profile_feedback(profile: Profile) -> Iterator[Feedback]:
    """What a profile says that the step waits for."""
    said = set[Code]()
    for found in diagnose(profile, None, None).findings:
        code = _CODES.get(found.rule)
        if code is not None and code not in said and (found.share or 0.0) > _WORTH_TELLING:
            said.add(code)
            yield feedback(code, found.statement.rstrip("."))


_POLL_S = 0.05  # seconds between two looks at a log; judgement: only the time
_THROTTLED = 1.1
"""Median of the last third of the steps over the first's, of steps that grow. Judgement: which tries are doubted."""
_BY_CHANCE = 0.01
"""Odds of as much of a trend by chance, below which it is one. Judgement: which tries are doubted."""
_NOISY = 0.03
"""Standard error of the mean above which it says little: undisturbed steps vary by as much each
(:data:`asap.diagnosis.facts.STEP_TIME_VARIATION`)."""

_HOPELESS, _ENOUGH_TO_TELL = 1.5, 5
"""A try whose steps take so many times the best's, after so many of them, is not the fastest: where runs of one
configuration differ by 10 %, one takes half as long again as another in 2 of 1,000 pairs."""


@dataclass(frozen=True)
class RunLimits:
    """When a try has shown enough.

    Args:
        steps: behind the warm-up.
        seconds: of a try.
    """

    steps: int = 20
    seconds: float = 3600.0


@dataclass(frozen=True)
class RunEvaluator:
    """Runs the user's command.

    Args:
        command: with places to fill in.
        session: makes names of tries that no other session has.
        overrides: the launcher's words for a configuration.
        tokens: of a device in a step.
        limits: of a try.
        folder: that the command runs in.
        report: called with what is going on.
        on_record: settings of the run that a try leaves as they are.
        objection: what is impossible about so many seconds of a step, where that is known.
        parallel: tries that run at once.
        timed: seconds of a step of the tries that ran, to which each adds.
    """

    command: Command
    session: str
    overrides: Callable[[Configuration], Overrides]
    tokens: float | None
    limits: RunLimits
    folder: Path
    report: Callable[[str], None] = lambda line: None
    on_record: Mapping[str, str] = field(default_factory=dict)
    objection: Callable[[Configuration, float], str | None] = lambda configuration, seconds: None
    parallel: int = 1
    timed: list[float] = field(default_factory=list)
    interrupted: threading.Event = field(default_factory=threading.Event)

    def interrupt(self) -> None:
        """Stop every try under way; it is lost."""
        self.interrupted.set()

    def evaluate(self, configuration: Configuration, place: Path, seconds: float = math.inf) -> Outcome:
        """Start the command, or find it started, and follow it to its end."""
        overrides, name = self.overrides(configuration), name_of_try(self.session, place.name)
        process = Process(place)
        log = RunLog(
            process.log, asked_settings(overrides), self.tokens, on_record=self.on_record, left_out=left_out(overrides)
        )
        began = time.time()
        process.start(self.command.script(overrides, configuration, name, place), self.folder)
        over = None
        try:
            over = self._follow(process, log, seconds)
        finally:
            cut_short = process.runs
            process.stop()
            if cut_short and (cancellation := self.command.cancellation(name, place)):
                _cancel(cancellation, place, self.folder)
        log.read(to_end=True)
        lasted = max((process.ended or time.time()) - (process.began or began), 0.0)
        tracked = self.command.tracked(name, place) if not log.times and process.code == 0 else None
        profile = profile_in(place)
        measured = tracked_step(tracked) if tracked else None
        if measured is None and profile is not None and not log.times and process.code == 0:
            measured = profiled_step(profile)
        outcome = self._outcome(process, log, over, cut_short, lasted, measured)
        if outcome.step_time_s and (wrong := self.objection(configuration, outcome.step_time_s)):
            return outcome.model_copy(update=_wrong_run(wrong))
        if outcome.step_time_s:
            self.timed.append(outcome.step_time_s)
        if profile is None or outcome.status != "done":
            return outcome
        return outcome.model_copy(update={"feedback": (*outcome.feedback, *profile_feedback(profile))})

    def _follow(self, process: Process, log: RunLog, left: float) -> Feedback | None:
        """Wait for enough steps or the end; what was wrong if it had to be stopped. ``left``: seconds of the budget."""
        began = process.began or time.time()
        while True:
            running = process.runs
            if log.read():
                if wrong := _wrong(log):
                    return wrong
                if (steady := _steady(log)) is not None and (steady.steps or 0) >= self._wanted(steady):
                    return None
                self.report(_progress(log))
            if log.too_long:
                return feedback(Code.CRASHED, "it wrote a log of gigabytes", "let it log less")
            if not running:
                return None
            if self.interrupted.is_set():
                return feedback(Code.INTERRUPTED)
            if time.time() - began > left:
                return feedback(Code.BUDGET_SPENT)
            if time.time() - began > self.limits.seconds:
                return feedback(Code.HANG, f"it was stopped after {format_seconds(self.limits.seconds)}")
            if not log.is_behind:
                time.sleep(_POLL_S)

    def _wanted(self, steady: MeasuredStep) -> int:
        """Steps that tell enough: few of what is far slower than the best."""
        hopeless = self.timed and steady.seconds > _HOPELESS * min(self.timed)
        return min(_ENOUGH_TO_TELL, self.limits.steps) if hopeless else self.limits.steps

    def _outcome(
        self, process: Process, log: RunLog, over: Feedback | None, cut_short: bool, seconds: float,
        tracked: MeasuredStep | Feedback | None,
    ) -> Outcome:  # fmt: skip
        steady, wrong = _steady(log), over or _wrong(log)
        if isinstance(tracked, Feedback):
            wrong = wrong or tracked
        elif tracked is not None:
            steady = tracked
        said: list[Feedback] = []
        if steady is not None and over is not None and over.code in (Code.HANG, Code.BUDGET_SPENT):
            said, wrong = [over], None
        enough = steady is not None and (steady.steps or 0) >= self._wanted(steady)
        died = not cut_short and not (process.code == 0 or (process.code is None and enough))
        status: Status = "done"
        if died or (wrong is None and steady is None):
            code = process.code if not cut_short else None
            status, reason = why_it_died(log.tail, code, len(log.times))
            said = [reason]
        elif wrong is not None:
            status, said = "lost" if wrong.code in (Code.BUDGET_SPENT, Code.INTERRUPTED) else "failed", [wrong]
        elif steady is not None and (grown := _growth(steady, log.times)) > 1.0:
            status, said = "failed", [feedback(Code.THROTTLED, f"its steps grew by {format_percent(grown - 1, 0)}")]
        timed = steady if status == "done" else None
        error = (timed.deviation or 0.0) / math.sqrt(timed.steps or 1) if timed else None
        if timed and error and error > _NOISY * timed.seconds:
            share = format_percent(error / timed.seconds, 0)
            said.append(feedback(Code.NOISE, f"the mean of its steps is known to ± {share} only"))
        if timed and log.asked and not log.shown:
            said.append(feedback(Code.UNCHECKED))
        return Outcome(
            status=status, step_time_s=timed.seconds if timed else None, standard_error_s=error,
            steps=timed.steps if timed else None, hbm_bytes=log.hbm_bytes, provenance=Provenance.MEASURED,
            feedback=tuple(said), seconds=seconds,
        )  # fmt: skip


def _steady(log: RunLog) -> MeasuredStep | None:
    try:
        return steady_step(log.times, "log") if log.times else None
    except ConfigError:
        return None


def _wrong(log: RunLog) -> Feedback | None:
    """What makes a result worthless, however fast it is."""
    if log.not_a_number:
        return feedback(Code.WRONG_RESULT)
    left_out = "let the command leave out the options in {without}"
    strayed = "start what is on record, or give the configuration that the command trains"
    found = [
        *((name, shown, f"asked for was {plain(asked, 40)}", None) for name, (asked, shown) in log.ignored().items()),
        *((name, shown, "and the try leaves it out", left_out) for name, shown in log.kept().items()),
        *((name, shown, f"the record has {plain(kept, 40)}", strayed) for name, (kept, shown) in log.strayed().items()),
    ]
    for name, shown, but, advice in found[:1]:
        said = f"the log shows {plain(name, 60)}={plain(shown, 40)}, {but}"
        return feedback(Code.IGNORED_OVERRIDE, said, advice)
    return None


def _wrong_run(reason: str) -> dict[str, object]:
    """What changes about an outcome whose step time no run of this experiment has."""
    advice = "start the model, batch and length on record, or correct the record"
    said = feedback(Code.WRONG_RESULT, f"{reason}: the command trains something else", advice)
    return {"status": "failed", "step_time_s": None, "standard_error_s": None, "steps": None, "feedback": (said,)}


def _growth(steady: MeasuredStep, times: list[float]) -> float:
    """By what factor the steps grew from the first third to the last; 1 where noise alone may explain it.

    Source: Kendall, "A new measure of rank correlation" (1938), for the trend.
    """
    kept = times[steady.left_out :]
    third = len(kept) // 3
    if third < 2 or (grown := median(kept[-third:]) / median(kept[:third])) <= _THROTTLED:
        return 1.0
    from scipy.stats import kendalltau

    _, by_chance = np.asarray(kendalltau(range(len(kept)), kept), np.float64)
    return grown if by_chance < _BY_CHANCE else 1.0


def _progress(log: RunLog) -> str:
    times = log.times
    return f"{len(times)} step(s), the last {format_seconds(times[-1])}" if times else "no step yet"


def _cancel(script: str, place: Path, folder: Path) -> None:
    """Run the cancellation, for a while."""
    own = place / "cancel"
    own.mkdir(exist_ok=True)
    cancelling = Process(own)
    cancelling.start(script, folder)
    until = time.monotonic() + 60.0
    while cancelling.runs and time.monotonic() < until:
        time.sleep(_POLL_S)
    cancelling.stop()
