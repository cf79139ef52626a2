"""The proposals of a run together: its situation, what is advised, and what would take more than is allowed."""

from pydantic import BaseModel, ConfigDict, Field

from asap.evidence.judgement import Judgement
from asap.prediction.prediction import Prediction
from asap.proposals.agent_words import AgentWords
from asap.proposals.ideas import Idea
from asap.proposals.options import Option
from asap.proposals.proposal import Proposal, Recommendation
from asap.proposals.reasons.modelled_step import ModelledStep
from asap.proposals.situation import Situation
from asap.proposals.smallest_fit import SmallestFit
from asap.proposals.trials import OfferedTrial


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
    compiled_flags: str | None = Field(default=None, description="what the compiler makes of missing flags")
    ideas: tuple[Idea, ...] = Field(default=(), description="untested changes beside the proposals, best first")
    agents: AgentWords | None = Field(default=None, description="what the agents wrote about the run as a whole")
