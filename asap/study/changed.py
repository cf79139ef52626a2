"""A run with its record changed: another batch, sequence, slice, precision or optimizer."""

from asap.core.errors import UsageError
from asap.experiments import Experiment
from asap.experiments.create import Statement, amend
from asap.study.study import Study, study_of


def drop_step_time(study: Study, experiment: Experiment) -> Study:
    """The study of a changed record: the measured shares of the step still hold, its duration and its memory do not."""
    profile = study.profile
    if profile is not None:
        profile = profile.model_copy(update={"kpis": profile.kpis.model_copy(update={"step_time_s": None})})
    return study_of(experiment.model_copy(update={"measured": None, "observed": None}), profile)


def changed_study(study: Study, said: Statement, precision: str | None = None, optimizer: str | None = None) -> Study:
    """The run with what is said in place of what is on record.

    Raises:
        UsageError: nothing is said.
        AsapError: what is said cannot be read, or there is no such hardware.
    """
    fields = {"precision": precision, "optimizer": optimizer}
    named = {name: value for name, value in fields.items() if value is not None}
    if said == Statement() and not named:
        raise UsageError("nothing changes", where=study.experiment.id, hint="name a batch, a sequence, hardware, …")
    experiment = amend(study.experiment, said)
    if named:
        workload = type(experiment.workload).model_validate({**experiment.workload.model_dump(), **named})
        experiment = experiment.model_copy(update={"workload": workload})
    return drop_step_time(study, experiment)
