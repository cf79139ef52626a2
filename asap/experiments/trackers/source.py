"""Which tracker a target belongs to."""

from asap.core.errors import UsageError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.trackers.mlflow import is_mlflow, read_mlflow
from asap.experiments.trackers.tensorboard import is_tensorboard, read_tensorboard
from asap.experiments.trackers.tracked_run import as_experiment


def is_tracked(target: str) -> bool:
    """Whether a target is a run of a tracker: ``mlflow:RUN_ID``, ``tensorboard:DIR``."""
    return is_mlflow(target) or is_tensorboard(target)


def read_tracked(target: str, experiment: Experiment) -> Experiment:
    """``experiment`` with what the tracker knows of the run; what is on record already, such as its hardware, helps.

    Raises:
        UsageError: the target is no run of a tracker.
        AsapError: what :func:`read_mlflow` and :func:`read_tensorboard` raise.
    """
    if is_mlflow(target):
        return as_experiment(read_mlflow(target), experiment)
    if is_tensorboard(target):
        return as_experiment(read_tensorboard(target), experiment)
    hint = "write mlflow:RUN_ID or tensorboard:DIR"
    raise UsageError("is not a run of MLflow or TensorBoard", where=f"--from {plain(target, 80)}", hint=hint)
