"""The flags of a run, judged for the plan that runs or for another."""

from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.diagnosis.shares import Shares
from asap.experiments import Experiment
from asap.flags import FlagReview, Situation, review_flags
from asap.flags.environment import FLAG_VARIABLES, GivenFlag
from asap.flags.situation import TRAFFIC
from asap.flags.table import flag_tables
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


def flag_of(study: Study, flag: GivenFlag) -> FlagReview:
    """What is said of one flag alone: what it is for, whether the run misses it, and what harm it would do there."""
    holder = next((table.variable for table in flag_tables() if flag.name in table.purposes), None)
    if holder is None:
        holder = "" if flag.name.isupper() else FLAG_VARIABLES["_gpu_" in flag.name]
    on_record = study.experiment.environment
    given = f"{on_record.get(holder, '')} --{flag.name}={flag.value}" if holder else flag.value
    there = study.experiment.model_copy(update={"environment": {**on_record, holder or flag.name: given}})
    now, then = flags_of(study), _review(there, study.plan, study.chip)
    return FlagReview(
        on_record=now.on_record,
        set=tuple(one for one in then.set if one.name == flag.name),
        missing=tuple(advice for advice in now.missing if flag.name in advice.flags),
        unwise=tuple(advice for advice in then.unwise if flag.name in advice.flags),
    )


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
