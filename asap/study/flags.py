"""The flags of a run, judged for the plan that runs or for another."""

from asap.diagnosis.facts import STEP_TIME_VARIATION, Shares
from asap.experiments import Experiment
from asap.flags import FlagReview, Situation, review_flags
from asap.flags.situation import TRAFFIC
from asap.hardware import Chip, find_chip
from asap.plans import Plan
from asap.stacks.launchers import stack_of
from asap.study.study import Study

_NOTHING: frozenset[str] = frozenset()


def flags_of_record(experiment: Experiment) -> FlagReview:
    """The flags on record, for the plan on record."""
    named = find_chip(experiment.hardware.chip) if experiment.hardware.chip else None
    return _review(experiment, experiment.plan, named.chip if named else None)


def flags_of(study: Study) -> FlagReview:
    """The flags of the run; nothing is proposed for what its profile shows to cost nothing."""
    measured = study.shares if study.profile and study.profile.operations else None
    return _review(study.experiment, study.plan, study.chip, _hidden(measured) if measured else _NOTHING)


def flags_for(study: Study, plan: Plan) -> FlagReview:
    """The flags of the run, if it ran another plan: missing is only what the plan that runs does not miss."""
    now, then = (_review(study.experiment, each, study.chip) for each in (study.plan, plan))
    return then.model_copy(update={"missing": tuple(advice for advice in then.missing if advice not in now.missing)})


def _review(
    experiment: Experiment, plan: Plan | None, chip: Chip | None, hidden: frozenset[str] = _NOTHING
) -> FlagReview:
    framework = experiment.workload.framework
    stack = stack_of(framework) if framework else None
    return review_flags(experiment.environment, Situation(plan, chip, stack, experiment.model, hidden))


def _hidden(shares: Shares) -> frozenset[str]:
    """What takes less of the step than steps vary."""
    traffic = {"communication": TRAFFIC, "host_transfer": frozenset({"offload"})}
    small = (words for resource, words in traffic.items() if shares.relative(resource) < STEP_TIME_VARIATION)
    return _NOTHING.union(*small)
