"""A run with its record changed: another batch, sequence, slice, precision or optimizer."""

from collections.abc import Mapping

from asap.core.errors import UsageError
from asap.experiments import Experiment
from asap.experiments.create import Statement, amend
from asap.models import Workload
from asap.study.study import Study, study_of


def drop_step_time(study: Study, experiment: Experiment) -> Study:
    """The study of a changed record: the measured shares of the step still hold, its duration and its memory do not."""
    profile = study.profile
    if profile is not None:
        profile = profile.model_copy(update={"kpis": profile.kpis.model_copy(update={"step_time_s": None})})
    return study_of(experiment.model_copy(update={"measured": None, "observed": None}), profile)


def changed_study(study: Study, said: Statement, workload: Mapping[str, object] | None = None) -> Study:
    """The run with what is said, and these fields of the workload, in place of what is on record.

    Raises:
        UsageError: nothing is said.
        AsapError: what is said cannot be read, or there is no such hardware.
    """
    if said == Statement() and not workload:
        raise UsageError("nothing changes", where=study.experiment.id, hint="name a batch, a sequence, hardware, …")
    experiment = amend(study.experiment, said)
    if workload:
        after = Workload.model_validate({**experiment.workload.model_dump(), **workload})
        experiment = experiment.model_copy(update={"workload": after})
    return drop_step_time(study, experiment)
