"""The settings of the agents. The descriptions of the fields are their documentation.

:mod:`asap.agents.settings_sources` reads them from the command line, the environment and a file.
"""

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

BUILTIN = "builtin/planner"
"""The model that needs no key."""

MOST_CALLS = 60
"""Calls of the model in one run: twice those of a model that calls one tool a turn and is refused twice."""


class Price(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, description="USD for a million input tokens")
    output: float = Field(ge=0, description="USD for a million output tokens")


class Retries(BaseModel):
    """Timeout of one model request, and how often it is retried after 408, 429, 5xx, a timeout or a lost connection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_s: PositiveFloat = Field(default=120.0, description="seconds without an answer until a request fails")
    answer_s: PositiveFloat = Field(default=600.0, description="seconds that one answer may take, to its end")
    attempts: PositiveInt = Field(default=4, description="requests in all, the first one included")
    first_delay_s: PositiveFloat = Field(default=1.0, description="seconds before the first retry; doubles each time")


class Settings(BaseModel):
    """All settings of the agents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(default=BUILTIN, description="language model: builtin/planner, gemini-…, or provider/model")
    temperature: float | None = Field(default=0.2, ge=0, le=2, description="of the language model; 0 is the steadiest")
    max_answer_tokens: PositiveInt = Field(default=8192, description="maximum tokens of one answer, thoughts included")
    max_calls: PositiveInt = Field(default=MOST_CALLS, description="maximum model calls in one run or chat turn")
    max_tokens: PositiveInt | None = Field(default=None, description="maximum tokens, input and output, in one run")
    max_cost: PositiveFloat | None = Field(default=None, description="maximum US dollars in one run")
    retries: Retries = Field(default=Retries(), description="timeout and retries of one model request")
    prices: dict[str, Price] = Field(default={}, description="USD for a million tokens, by name of the model")
