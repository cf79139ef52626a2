"""What the agents answer: judgement in words, and plans by name. No field asks a model for a number.

Whatever a weak model leaves out has a default, so that what it did say counts.
"""

from pydantic import BaseModel, Field

from asap.diagnosis import Bottleneck
from asap.history.record import ChangeKind, Part


class AnalysisRequest(BaseModel):
    """What the coordinator hands to the workflow."""

    experiment: str = Field(description="ID of the experiment, exactly as the user wrote it")


class Assessment(BaseModel):
    """What the analyzer makes of the facts."""

    bottleneck: Bottleneck | None = Field(default=None, description="what the run waits for most")
    statement: str = Field(default="", description="why, in one or two sentences")
    evidence: list[str] = Field(default=[], description="the facts that say so, each with its reference in braces")
    missing: list[str] = Field(default=[], description="what is not known and would change the answer")


class Pick(BaseModel):
    """A plan that the proposal agent chose."""

    plan: str = Field(description="the plan, exactly as candidates writes it")
    reason: str = Field(default="", description="why this plan for this bottleneck, and what it costs")


class UntestedIdea(BaseModel):
    """Something that is not among the plans of the engine."""

    kind: ChangeKind = Field(description="what it changes")
    change: str = Field(description="the change in the words of the launcher, compiler or code")
    touches: Part = Field(default=Part.STEP, description="the part of the step that it touches")
    hypothesis: str = Field(default="", description="which part of the step it shortens, and why")
    refuted_by: str = Field(default="", description="the observation that would refute it")
    how: str = Field(default="", description="the cheapest way to try it")
    precedents: list[str] = Field(default=[], description="IDs of the records and notes that it rests on")


class Judgement(BaseModel):
    """The proposal agent's choice, best first."""

    picks: list[Pick] = Field(default=[], description="different plans, best first; what is left open the engine fills")
    recommendation: str = Field(default="", description="which to run first and why, or why to keep what runs now")
    ideas: list[UntestedIdea] = Field(default=[], description="at most three; none is a good answer")


class Objection(BaseModel):
    """What speaks against one choice."""

    plan: str = Field(description="the plan that it is about, as it is written")
    objection: str = Field(description="what could make it fail, and the observation that would show it")


class Critique(BaseModel):
    """What the critic found."""

    objections: list[Objection] = Field(default=[], description="the strongest for each choice; may be empty")
    summary: str = Field(default="", description="what speaks against the whole choice, in a sentence; may be empty")
