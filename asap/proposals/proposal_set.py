"""The proposals of a run together, what would take more than is allowed, and what the agents wrote."""

from pydantic import BaseModel, ConfigDict, Field

from asap.evidence.judgement import Judgement
from asap.prediction.prediction import Prediction
from asap.proposals.ideas import Idea
from asap.proposals.options import Option
from asap.proposals.proposal import Proposal, Recommendation
from asap.proposals.reasons.modelled_step import ModelledStep
from asap.proposals.situation import Situation
from asap.proposals.smallest_fit import SmallestFit
from asap.proposals.trials import OfferedTrial


class AgentWords(BaseModel):
    """Words of a language model, held against the engine's figures; ``~`` stands before what is the model's own."""

    model_config = ConfigDict(frozen=True)

    statement: str | None = Field(default=None, description="the analyzer's: what holds the run back, and why")
    evidence: tuple[str, ...] = Field(default=(), description="the analyzer's: the facts that say so")
    missing: tuple[str, ...] = Field(default=(), description="the analyzer's: what is not known and could change it")
    summary: str | None = Field(default=None, description="the critic's, of the whole choice")


class ProposalSet(BaseModel):
    """At most three, the incumbent that they are compared with, and the advice."""

    model_config = ConfigDict(frozen=True)

    incumbent: Prediction | None
    proposals: tuple[Proposal, ...]
    recommendation: Recommendation
    considered: int = Field(default=0, description="valid configurations that were evaluated")
    warnings: tuple[str, ...] = ()
    situation: Situation | None = None
    smallest_fit: SmallestFit | None = Field(
        default=None, description="the smallest change with which what runs fits, where that is open"
    )
    judgement: Judgement | None = Field(default=None, description="of the measured step; None: nothing to judge")
    modelled: ModelledStep | None = Field(default=None, description="what the step waits for, where no profile says it")
    options: tuple[Option, ...] = Field(default=(), description="what would take more than is allowed")
    trials: tuple[OfferedTrial, ...] = Field(default=(), description="settings that no search varies, to test")
    ideas: tuple[Idea, ...] = Field(default=(), description="untested changes beside the proposals, best first")
    agents: AgentWords | None = Field(default=None, description="what the agents wrote about the run as a whole")
