"""Changes one setting in the user's file, and leaves its comments and its other sections alone."""

from pathlib import Path

from pydantic import ValidationError

from asap.agents.settings import Settings
from asap.agents.settings_sources import FILES
from asap.core.errors import ConfigError, UsageError
from asap.core.files import home, write_atomically
from asap.core.text import plain
from asap.experiments.files.documents import read_text, validation_reason

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
        raise UsageError(reason, where=plain(name, 60), hint="asap config show lists them") from error
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
