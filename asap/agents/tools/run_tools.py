"""Tools on what was measured: the experiment, its KPIs, its operations, its roofline, the findings."""

from typing import Annotated

from pydantic import Field

from asap.agents.tools.results import Answer, answering, facts, named, quoted
from asap.agents.tools.study_cache import StudyCache
from asap.core.errors import InsufficientEvidenceError
from asap.profiles import Operation, Profile
from asap.study.flags import flags_of
from asap.study.study import Study

Limit = Annotated[int, Field(ge=1, le=50)]


class RunTools:
    """Tools that only read the facts of a run."""

    def __init__(self, studies: StudyCache):
        self._studies = studies

    @answering
    def get_experiment(self, experiment: str) -> Answer:
        """Look up what is on record about a training run: model, batch, hardware, and the plan that runs now.

        Call this first. Whatever is not in the answer is unknown, not zero.

        Args:
            experiment: ID of the experiment.
        """
        study = self._studies.study(experiment)
        record = study.experiment
        return {
            "experiment": record.id,
            "description": quoted(record.description, "description") if record.description else None,
            "model": facts(record.model) if record.model else None,
            "workload": facts(record.workload),
            "hardware": facts(record.hardware),
            "devices": study.slice.devices if study.slice else record.hardware.devices,
            "plan": str(study.plan) if study.plan else None,
            "facts": _origin(study.profile) if study.profile else None,
            "warnings": [quoted(warning, "warning") for warning in study.warnings],
        }

    @answering
    def get_kpis(self, experiment: str) -> Answer:
        """Get step time, duty cycle, idle, input and communication share, and the share of each kind of collective.

        Shares are fractions of the step, 0 to 1. Collectives count as busy in the duty cycle.

        Args:
            experiment: ID of the experiment.
        """
        profile = _profile(self._studies.study(experiment))
        kpis = profile.kpis.model_dump(mode="json")
        return {
            "kpis": {name: value for name, value in kpis.items() if value is not None},
            "unknown": [name for name, value in kpis.items() if value is None],
            "facts": _origin(profile),
        }

    @answering
    def get_operations(self, experiment: str, limit: Limit = 10) -> Answer:
        """List the HLO operations that take the most self time, with their bound and how well they use it.

        A low FLOP utilisation of a collective or of an HBM-bound operation is no inefficiency of compute.

        Args:
            experiment: ID of the experiment.
            limit: how many operations, 1 to 50.
        """
        profile = _profile(self._studies.study(experiment))
        return {
            "operations": [_operation(operation) for operation in profile.operations[:limit]],
            "total": len(profile.operations),
            "facts": _origin(profile),
        }

    @answering
    def get_roofline(self, experiment: str, limit: Limit = 10) -> Answer:
        """Get the peaks of the device, where the whole program stands under them, and each leading operation's bound.

        Args:
            experiment: ID of the experiment.
            limit: how many operations, 1 to 50.
        """
        profile = _profile(self._studies.study(experiment))
        return {
            "roofline": facts(profile.roofline),
            "operations": [
                {
                    "name": named(operation.name),
                    "fraction": operation.fraction,
                    "bound": "opaque" if operation.opaque else operation.bound,
                    "efficiency": operation.roofline_efficiency,
                }
                for operation in profile.operations[:limit]
            ],
            "facts": _origin(profile),
        }

    @answering
    def get_findings(self, experiment: str) -> Answer:
        """Get the diagnosis: the bottleneck, each finding with its evidence, and what is missing.

        The rules have already set the KPIs against the operations. Build on these findings.

        Args:
            experiment: ID of the experiment.
        """
        return facts(self._studies.study(experiment).diagnosis)

    @answering
    def get_flags(self, experiment: str) -> Answer:
        """Get the flags of compilers and runtimes: what the run sets, what it lacks for its plan, what does harm.

        Where `on_record` is false, what is missing may be set all the same: ask before you propose it.

        Args:
            experiment: ID of the experiment.
        """
        return facts(flags_of(self._studies.study(experiment)))


def _profile(study: Study) -> Profile:
    if study.profile is None:
        raise InsufficientEvidenceError(
            "there is no profile of this run", where=study.experiment.id, hint="get_findings says what to capture"
        )
    return study.profile


def _origin(profile: Profile) -> str:
    kind = "stated by" if profile.stated else "measured, from"
    return f"{kind} {named(profile.source)}; times are per {profile.extent}"


def _operation(operation: Operation) -> Answer:
    names = {"name": named(operation.name), "category": named(operation.category)}
    return facts(operation, "shape", "source") | names
