"""What the agents answer: judgement in words, and plans by name. No field asks a model for a number."""

from pydantic import BaseModel, Field

from asap.diagnosis import Bottleneck


class AnalysisRequest(BaseModel):
    """What the coordinator hands to the workflow."""

    experiment: str = Field(description="ID of the experiment, exactly as the user wrote it")


class Assessment(BaseModel):
    """What the analyzer makes of the facts."""

    experiment: str = Field(description="ID of the experiment")
    bottleneck: Bottleneck = Field(description="what the run waits for most")
    statement: str = Field(description="why, in one or two sentences, from the findings")
    evidence: list[str] = Field(description="the facts that say so, each with its value as a tool gave it")
    missing: list[str] = Field(description="what is not known and would change the answer; may be empty")


class Pick(BaseModel):
    """A plan that the proposal agent chose."""

    plan: str = Field(description="the plan exactly as candidates writes it, such as data=32 seq=2 model=2")
    reason: str = Field(description="why this plan for this bottleneck, from principle, precedent and prediction")


class Judgement(BaseModel):
    """The proposal agent's choice, best first."""

    picks: list[Pick] = Field(description="as many different plans as engine_choice holds, best first")
    recommendation: str = Field(description="which to run first and why, or why to keep what runs now")
