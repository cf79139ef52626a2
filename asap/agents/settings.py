"""The settings of the agents: read from the command line, the environment, a file; and changed in that file."""

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from asap.core.errors import ConfigError, UsageError
from asap.core.files import home, write_atomically
from asap.core.numbers import parse_toml
from asap.core.text import plain
from asap.experiments.files.documents import read_text, validation_reason

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


FILES = ("asap.toml", "config.toml")
PREFIX = "ASAP_"


class _LayeredSettings(BaseSettings, Settings):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Settings from all sources; :func:`read_settings` turns its errors into ours."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", env_ignore_empty=True, frozen=True, extra="forbid"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, InitSettingsSource(settings_cls, _from_file())


def read_settings(**options: Any) -> Settings:
    """The settings as the user has them.

    Args:
        options: fields of :class:`Settings` from the command line; ``None`` where an option was not given.

    Raises:
        ConfigError: a file or an environment variable is malformed.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        found = _LayeredSettings(**given)
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=_origin(error, given)) from error
    except SettingsError as error:
        raise ConfigError(plain(error, 120), where="environment") from error
    return Settings.model_validate(found.model_dump())


def setting_files() -> list[tuple[Path, bool]]:
    """The files that may hold settings, in the order of precedence, and which of them is read."""
    own = _section(Path(FILES[0])) is not None
    users = home() / FILES[1]
    return [(Path(FILES[0]).absolute(), own), (users, not own and _section(users) is not None)]


def origin_of(field: str) -> str:
    """Where a field of the settings comes from: the environment, a file, or the default."""
    prefix = f"{PREFIX}{field.upper()}"
    named = next((name for name in os.environ if name == prefix or name.startswith(f"{prefix}__")), None)
    if named is not None and os.environ[named]:
        return named
    if field in _from_file():
        return str(next(path for path, read in setting_files() if read))
    return "default"


def _origin(error: ValidationError, options: dict[str, Any]) -> str:
    """What holds a bad value; the file was checked before."""
    field = str(error.errors()[0]["loc"][0])
    return f"--{field.replace('_', '-')}" if field in options else f"{PREFIX}{field.upper()}"


def _from_file() -> dict[str, Any]:
    found = _section(Path(FILES[0]))
    return (_section(home() / FILES[1]) if found is None else found) or {}


def _section(path: Path) -> dict[str, Any] | None:
    """The table ``[agents]`` of a file; ``None`` if there is no such file or table."""
    if not path.is_file():
        return None
    try:
        section = parse_toml(read_text(path), str(path)).get("agents")
        if section is None:
            return None
        Settings.model_validate(section)
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=f"{path} [agents]") from error
    return section


SECTION = "agents"


def set_setting(name: str, value: str) -> Path:
    """Set a field of :class:`Settings` in ``$ASAP_HOME/config.toml``; returns the file.

    Args:
        name: of the field; ``retries.attempts`` for a field of a field.
        value: as text; numbers are read as numbers.

    Raises:
        UsageError: there is no such setting, or the value is not one for it.
        ConfigError: the file is not TOML.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    path = home() / FILES[1]
    *outer, last = name.split(".")
    try:
        document = tomlkit.parse(read_text(path) if path.is_file() else "")
        section = document.setdefault(SECTION, tomlkit.table())
        table = section
        for key in outer:
            table = table.setdefault(key, tomlkit.table())
        table[last] = _typed(value)
        Settings.model_validate(section.unwrap())
    except ValidationError as error:
        unknown = error.errors()[0]["type"] == "extra_forbidden"
        reason = "no such setting" if unknown else validation_reason(error).partition(": ")[2]
        raise UsageError(reason, where=plain(name, 60), hint="`asap config show` lists them") from error
    except (TOMLKitError, AttributeError, TypeError) as error:
        raise ConfigError(f"cannot be changed: {plain(error, 120)}", where=str(path)) from error
    write_atomically(path, tomlkit.dumps(document))
    return path


def _typed(value: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return value
