"""What the agents wrote about a run as a whole, beside the engine's own words."""

from pydantic import BaseModel, ConfigDict, Field


class AgentWords(BaseModel):
    """Words of a language model, held against the engine's figures; ``~`` stands before what is the model's own."""

    model_config = ConfigDict(frozen=True)

    statement: str | None = Field(default=None, description="the analyzer's: what holds the run back, and why")
    evidence: tuple[str, ...] = Field(default=(), description="the analyzer's: the facts that say so")
    missing: tuple[str, ...] = Field(default=(), description="the analyzer's: what is not known and could change it")
    summary: str | None = Field(default=None, description="the critic's, of the whole choice")
