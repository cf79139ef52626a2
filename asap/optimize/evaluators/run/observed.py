"""What a try left beside its log: step times of a tracker, and what its profile shows."""

from collections.abc import Iterator
from pathlib import Path

from asap.core.errors import AsapError
from asap.core.feedback import Feedback
from asap.core.text import plain
from asap.diagnosis.diagnose import diagnose
from asap.experiments import Experiment
from asap.experiments.observed import MeasuredStep
from asap.experiments.trackers.source import read_tracked
from asap.optimize.outcome import Code, feedback
from asap.profiles import Profile


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
"""Share of the time that one cause has to cost to be worth a word."""
_CODES = {
    "idle_device": Code.LAUNCH_BOUND,
    "host_bound": Code.LAUNCH_BOUND,
    "communication_bound": Code.EXPOSED_COLLECTIVE,
}
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
