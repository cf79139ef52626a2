"""Reads the settings of the agents: the command line, then the environment, then a file.

The file is ``asap.toml`` in the working directory if it has a table ``[agents]``, else ``$ASAP_HOME/config.toml``. An
environment variable is the name of a field with the prefix ``ASAP_``: ``ASAP_MODEL``, ``ASAP_MAX_CALLS``,
``ASAP_RETRIES__ATTEMPTS``.
"""

import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from asap.agents.settings import Settings
from asap.core.errors import ConfigError
from asap.core.files import home
from asap.core.text import plain
from asap.core.toml import parse_toml
from asap.experiments.files.documents import read_text, validation_reason

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
        section = _renamed(section)
        Settings.model_validate(section)
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=f"{path} [agents]") from error
    return section


def _renamed(section: Any) -> Any:
    """``patience`` is the old name of ``retries``."""
    if not isinstance(section, dict) or "patience" not in section or "retries" in section:
        return section
    return {"retries" if key == "patience" else key: value for key, value in section.items()}
