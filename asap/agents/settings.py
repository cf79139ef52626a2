"""What the user sets for the agents: ``[agents]`` in ``asap.toml``, else in ``$ASAP_HOME/config.toml``.

What is said on the command line or in ``ASAP_MODEL`` comes first.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from asap.agents.models import BUILTIN
from asap.core.errors import ConfigError
from asap.core.files import home
from asap.core.text import plain
from asap.experiments.documents import read_text, validation_reason

FILES = ("asap.toml", "config.toml")
MOST_CALLS = 60
"""Calls of the model in one run: twice those of a model that calls one tool a turn and is refused twice."""


class Price(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class Patience(BaseModel):
    """How long a model is waited for, and how often it is asked again after 408, 429, 5xx or a timeout."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_s: PositiveFloat = 120.0
    attempts: PositiveInt = 4
    first_delay_s: PositiveFloat = Field(default=1.0, description="doubled with every attempt")


class Settings(BaseModel):
    """All that can be set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = BUILTIN
    max_calls: PositiveInt = Field(default=MOST_CALLS, description="calls of the model in one run")
    max_tokens: PositiveInt | None = Field(default=None, description="tokens in one run, in and out")
    max_cost: PositiveFloat | None = Field(default=None, description="US dollars in one run")
    patience: Patience = Patience()
    prices: dict[str, Price] = Field(default={}, description="by name of the model")


def read_settings(**said: Any) -> Settings:
    """The settings, with what the user said over what the files say.

    Args:
        said: fields of :class:`Settings`; ``None`` is nothing said.

    Raises:
        ConfigError: a file is malformed.
    """
    written = _read(Path(FILES[0]))
    if written is None:
        written = _read(home() / FILES[1])
    model = os.environ.get("ASAP_MODEL")
    over = ({"model": model} if model else {}) | {name: value for name, value in said.items() if value is not None}
    return Settings.model_validate({**(written or {}), **over})


def _read(path: Path) -> dict[str, Any] | None:
    """The section of a file; ``None`` if there is no such file or section."""
    if not path.is_file():
        return None
    try:
        section = tomllib.loads(read_text(path)).get("agents")
        if section is not None:
            Settings.model_validate(section)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"is not TOML: {plain(error, 120)}", where=str(path)) from error
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=f"{path} [agents]") from error
    return section
