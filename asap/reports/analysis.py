"""The result of an analysis as a contract: ``asap.analysis/3``, what ``--format json`` prints."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Provenance
from asap.diagnosis import Diagnosis
from asap.evidence.anchor import apply_measured_step
from asap.evidence.judgement import Judgement
from asap.experiments import HardwareReference
from asap.flags import FlagReview
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.profiles import Kpis, Operation, Roofline
from asap.proposals import Proposal, ProposalSet, Recommendation
from asap.proposals.ideas import Idea
from asap.proposals.options import Option
from asap.proposals.proposal_set import AgentWords
from asap.proposals.reasons.modelled_step import ModelledStep
from asap.proposals.situation import SituationName
from asap.proposals.trials import OfferedTrial
from asap.study.flags import flags_of
from asap.study.study import Study

SCHEMA = "asap.analysis/3"
TOP = 5


class ExperimentSummary(BaseModel):
    """What was analysed."""

    model_config = ConfigDict(frozen=True)

    id: str
    description: str | None
    model: Architecture | None
    workload: Workload
    hardware: HardwareReference
    devices: int | None
    plan: Plan | None
    profile: str | None = Field(description="where the facts come from")
    stated: bool = Field(description="facts copied from a report, not read from a profile")
    provenance: dict[str, str]


class Analysis(BaseModel):
    """One analysis: the facts, the diagnosis, the proposals, and who made them."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["asap.analysis/3"] = Field(default=SCHEMA, alias="schema")
    session: str = Field(description="its worklog: `asap sessions show SESSION`")
    agent_model: str = Field(description="the language model behind the agents, builtin/planner by default")
    answered_by: Literal["agents", "engine"] = Field(
        default="agents", description="engine: the agents failed, and this is the engine's own choice"
    )
    experiment: ExperimentSummary
    kpis: Kpis | None
    roofline: Roofline | None
    time_shares: dict[str, float] | None = Field(
        default=None, description="share of the step, or window, by what it waits for; None: not known"
    )
    top_operations: tuple[Operation, ...]
    diagnosis: Diagnosis
    incumbent: Prediction | None
    proposals: tuple[Proposal, ...]
    recommendation: Recommendation
    flags: FlagReview | None = Field(default=None, description="of the run: set, missing, harmful; None: not looked at")
    situation: SituationName | None = Field(default=None, description="what decides which advice is needed")
    also: tuple[SituationName, ...] = Field(default=(), description="what holds of the run besides")
    judgement: Judgement | None = Field(
        default=None, description="the measured step beside what the model expects of it; None: nothing to judge"
    )
    situation_statement: str | None = Field(default=None, description="the situation in a sentence")
    modelled: ModelledStep | None = Field(default=None, description="what the step waits for, where no profile says it")
    options: tuple[Option, ...] = Field(default=(), description="what it would take to do better than is allowed")
    trials: tuple[OfferedTrial, ...] = Field(default=(), description="settings that no search varies, to test")
    ideas: tuple[Idea, ...] = Field(default=(), description="untested changes beside the proposals, best first")
    agents: AgentWords | None = Field(default=None, description="words of a language model about the run as a whole")
    considered: int = Field(description="valid configurations that were evaluated")
    warnings: tuple[str, ...]

    def to_json(self) -> str:
        """The contract as text."""
        return self.model_dump_json(indent=2, by_alias=True)


def assemble(
    study: Study, proposals: ProposalSet, session: str, agent_model: str, failure: str | None = None
) -> Analysis:
    """Put a study and its proposals into the contract.

    Args:
        study: the run.
        proposals: the agents' or the engine's.
        session: name of the worklog.
        agent_model: name of the language model.
        failure: why the agents gave no answer, if these proposals are the engine's own.
    """
    experiment, profile, situation = study.experiment, study.profile, proposals.situation
    hardware, provenance = experiment.hardware, experiment.provenance
    if study.chip is not None and not (hardware.name or hardware.chip):
        hardware = hardware.model_copy(update={"chip": study.chip.name})
        provenance = provenance | {"hardware.chip": f"profile: {study.chip.name} is what its device type names"}
    summary = ExperimentSummary(
        id=experiment.id,
        description=experiment.description,
        model=experiment.model,
        workload=experiment.workload,
        hardware=hardware,
        devices=study.slice.devices if study.slice else experiment.hardware.devices or (profile and profile.devices),
        plan=study.plan,
        profile=profile.source if profile else None,
        stated=profile is not None and profile.provenance is Provenance.STATED,
        provenance=provenance,
    )
    now = apply_measured_step(study, proposals.incumbent) if proposals.incumbent else None
    return Analysis(
        session=session,
        agent_model=agent_model,
        answered_by="engine" if failure else "agents",
        experiment=summary,
        kpis=profile.kpis if profile else None,
        roofline=profile.roofline if profile else None,
        time_shares=_time_shares(study),
        top_operations=profile.operations[:TOP] if profile else (),
        diagnosis=study.diagnosis,
        incumbent=now,
        proposals=proposals.proposals,
        recommendation=proposals.recommendation,
        flags=flags_of(study),
        situation=situation.name if situation else None,
        also=situation.also if situation else (),
        judgement=proposals.judgement,
        situation_statement=situation.statement if situation else None,
        modelled=proposals.modelled,
        options=proposals.options,
        trials=proposals.trials,
        ideas=proposals.ideas,
        agents=proposals.agents,
        considered=proposals.considered,
        warnings=(*_failure_warning(failure), *study.warnings, *(now.notes if now else ()), *proposals.warnings),
    )


def _time_shares(study: Study) -> dict[str, float] | None:
    shares = study.shares
    if shares is None or not shares.coverage:
        return None
    found = shares.time | ({"idle": shares.idle} if shares.idle is not None else {})
    return {name: share for name, share in found.items() if share}


def _failure_warning(failure: str | None) -> tuple[str, ...]:
    if failure is None:
        return ()
    return (f"The agents gave no answer: {failure}. These proposals are the engine's own, without their judgement.",)
