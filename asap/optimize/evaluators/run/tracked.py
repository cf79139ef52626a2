"""Step times of a try from its run of a tracker, where its log has none."""

from asap.core.errors import AsapError
from asap.core.feedback import Feedback
from asap.core.text import plain
from asap.experiments import Experiment
from asap.experiments.observed import MeasuredStep
from asap.experiments.trackers.source import read_tracked
from asap.optimize.codes import Code
from asap.optimize.feedback import feedback


def tracked_step(target: str) -> MeasuredStep | Feedback:
    """The steady steps of ``tensorboard:DIR`` or ``mlflow:RUN_ID``, or why there are none."""
    try:
        measured = read_tracked(target, Experiment(id="try")).measured
    except AsapError as error:
        return feedback(Code.NO_STEP_TIME, plain(f"{target}: {error.message}", 200), error.hint)
    if measured is None or measured.steps is None:
        return feedback(Code.NO_STEP_TIME, plain(f"{target} has too few step times", 200))
    return measured
