"""Tools on what was measured: the experiment, its KPIs, its operations, its roofline, the findings."""

from typing import Annotated

from pydantic import Field

from asap.agents.tools.results import Answer, answering, facts, named, quoted
from asap.agents.tools.study_cache import StudyCache
from asap.agents.tools.tables import printed, table
from asap.core.errors import AsapError, InsufficientEvidenceError, NotFoundError
from asap.core.text import plain
from asap.core.units import format_percent, format_seconds
from asap.diagnosis import Finding
from asap.profiles import Operation, Profile
from asap.answers.hlo import hlo_around
from asap.study.flags import flags_of
from asap.study.study import Study

Name = Annotated[str, Field(min_length=1, max_length=200)]
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
            "operations": table([_operation(operation) for operation in profile.operations[:limit]]),
            "total": len(profile.operations),
            "facts": _origin(profile),
        }

    @answering
    def get_operation(self, experiment: str, name: Name) -> Answer:
        """Get all that is known of one operation: shape, source line, FLOPs, bytes, rates, how often it runs, and the
        HLO around it: what it takes, what uses its result, what a fusion holds.

        Args:
            experiment: ID of the experiment.
            name: of the operation as get_operations has it, or a part of it.
        """
        study = self._studies.study(experiment)
        profile = _profile(study)
        found = [operation for operation in profile.operations if name.lower() in operation.name.lower()]
        if not found:
            raise NotFoundError("no such operation", where=named(name), hint="get_operations lists them")
        first, texts = found[0], ("name", "category", "shape", "source")
        foreign = {text: named(value) for text in texts if (value := getattr(first, text))}
        alike = [named(one.name) for one in found[1:6]]
        return facts(first, *texts) | foreign | {"hlo": _hlo(study, first.name), "alike": alike}

    @answering
    def get_roofline(self, experiment: str) -> Answer:
        """Get the peaks of the device and where the whole program stands under them; operations have their own bound.

        Args:
            experiment: ID of the experiment.
        """
        profile = _profile(self._studies.study(experiment))
        return {"roofline": facts(profile.roofline), "facts": _origin(profile)}

    @answering
    def get_findings(self, experiment: str) -> Answer:
        """Get the diagnosis: the bottleneck, each finding with its evidence, and what is missing.

        The rules have already set the KPIs against the operations. Build on these findings.

        Args:
            experiment: ID of the experiment.
        """
        diagnosis = self._studies.study(experiment).diagnosis
        return {
            "bottleneck": diagnosis.bottleneck.value,
            "statement": diagnosis.statement,
            "coverage": diagnosis.coverage,
            "partial": diagnosis.partial,
            "findings": [_finding(finding) for finding in diagnosis.findings],
            "correlation": list(diagnosis.correlation),
            "missing": [facts(gap) for gap in diagnosis.missing],
        }

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


def _hlo(study: Study, operation: str) -> list[str] | str:
    """The HLO around an operation, or why there is none."""
    try:
        return [quoted(line, "hlo") for line in hlo_around(study, operation)]
    except AsapError as error:
        return plain(error.message)


def _origin(profile: Profile) -> str:
    kind = "stated by" if profile.stated else "measured, from"
    return f"{kind} {named(profile.source)}; times are per {profile.extent}"


def _operation(operation: Operation) -> Answer:
    return {
        "name": named(operation.name),
        "category": named(operation.category),
        "share": format_percent(operation.fraction),
        "time": None if operation.time_s is None else format_seconds(operation.time_s),
        "bound": "opaque" if operation.opaque else operation.bound,
        "collective": operation.collective,
        "flop_utilisation": operation.flop_utilisation,
        "memory_utilisation": operation.memory_utilisation,
        "roofline_efficiency": operation.roofline_efficiency,
    }


def _finding(finding: Finding) -> Answer:
    evidence = [{"fact": one.fact, "figure": printed(one.quantity)} for one in finding.evidence]
    answer = facts(finding, "evidence", "rule") | {"kind": finding.kind.value}
    return answer | ({"evidence": table(evidence)} if evidence else {})
