"""MaxText's settings for an experiment under a plan."""

from typing import Any

import yaml

from asap.core.errors import InsufficientEvidenceError
from asap.core.text import REDACTED
from asap.experiments import Experiment
from asap.plans import Plan
from asap.stacks.maxtext.overrides import to_overrides


def maxtext_settings(experiment: Experiment, plan: Plan) -> dict[str, Any]:
    """Settings with which MaxText runs an experiment under a plan: those on record, overridden by the plan.

    Raises:
        InsufficientEvidenceError: the experiment has no MaxText settings on record.
        PlanError: MaxText cannot express the plan.
    """
    excluded = ("base_config",)
    recorded = {key: v for key, v in experiment.hyperparameters.items() if v != REDACTED and key not in excluded}
    if experiment.workload.framework != "MaxText" or not recorded:
        hint = "asap experiments add ID --config run.yml"
        raise InsufficientEvidenceError("no MaxText settings are on record", where=experiment.id, hint=hint)
    batch, layers = experiment.workload.global_batch, experiment.model.layers if experiment.model else None
    topology = experiment.hardware.topology
    overrides = to_overrides(plan, recorded, global_batch=batch, layers=layers, topology=topology)
    return {**recorded, **{key: yaml.safe_load(value) for key, value in overrides.items()}}
