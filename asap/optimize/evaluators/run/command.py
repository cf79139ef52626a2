"""The user's command with a configuration filled in, or a copy of the user's file in which it is set."""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from shutil import copymode
from typing import Any

import tomlkit
import yaml

from asap.core.errors import ConfigError, UsageError
from asap.core.text import REDACTED, plain
from asap.experiments.files.documents import read_text
from asap.optimize.evaluators.run.settings import left_out, settings_document, words
from asap.proposals.proposal import Overrides

SUFFIXES = (".yaml", ".yml", ".json", ".toml")


def read_document(path: Path) -> MutableMapping[str, Any]:
    """The mapping in a file of YAML, JSON or TOML.

    Raises:
        BadInputError: the file cannot be read.
        ConfigError: it is of another kind, malformed, or no mapping.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError("is neither YAML, JSON nor TOML", where=str(path), hint="name it .yaml, .json or .toml")
    text = read_text(path)
    try:
        match path.suffix:
            case ".json":
                document = json.loads(text)
            case ".toml":
                document = tomlkit.parse(text)
            case _:
                document = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"cannot be parsed: {plain(error, 120)}", where=str(path)) from error
    if not isinstance(document, MutableMapping):
        raise ConfigError("is no mapping of settings", where=str(path))
    return document


def write_changed(path: Path, settings: dict[str, Any], folder: Path) -> Path:
    """Write the file into a folder, as private as it is, with settings changed or added; comments stay in TOML only.

    Raises:
        BadInputError, ConfigError: as :func:`read_document`, or a setting stands where the file has a section.
    """
    document = read_document(path)
    _change(document, settings, str(path))
    copy = folder / path.name
    copy.touch(mode=0o600)
    copy.write_text(_written(document, path.suffix), encoding="utf-8")
    copymode(path, copy)
    return copy


def _change(document: MutableMapping[str, Any], settings: dict[str, Any], where: str) -> None:
    for key, value in settings.items():
        below = document.get(key)
        if isinstance(value, dict) and below is not None:
            if not isinstance(below, MutableMapping):
                raise ConfigError(f"{plain(key, 40)} is no section", where=where)
            _change(below, value, where)
        else:
            document[key] = value


def _written(document: MutableMapping[str, Any], suffix: str) -> str:
    if suffix == ".json":
        return json.dumps(document, indent=2) + "\n"
    return tomlkit.dumps(document) if suffix == ".toml" else yaml.safe_dump(document, sort_keys=False)


OVERRIDES, CONFIG = "{overrides}", "{config}"


@dataclass(frozen=True)
class Command:
    """What starts a try, what it is waited for with where that returns at once, and what cancels it there.

    In each, ``{overrides}`` stands for the launcher's words, ``{config}`` for a configuration file with them,
    ``{without}`` for options that a try leaves out, ``{plan}`` for the plan, ``{try}`` for a name of the try that no
    other has, ``{folder}`` for a folder of its own.

    Args:
        start: run by a shell; has to contain ``{overrides}`` or ``{config}``.
        wait_for: run after it; its output is the log, and the try lasts as long as it.
        cancel: run when a try is stopped before its end.
        steps_from: run of a tracker that has the step times, where the log has none.
        config: the file of which ``{config}`` is a copy.
        places: settings of a user's own space that have a place: ``{lr}`` is 0.1 under ``lr=0.1``.
    """

    start: str
    wait_for: str | None = None
    cancel: str | None = None
    steps_from: str | None = None
    config: Path | None = None
    places: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if OVERRIDES not in self.start and CONFIG not in self.start and not self.places:
            hint = "'./train.sh {overrides}', or './train.sh {config}' with --template FILE"
            raise UsageError(
                f"the command has no {OVERRIDES}, so every try would be the same", where="--command", hint=hint
            )
        if (CONFIG in self.start) != (self.config is not None):
            raise UsageError(f"goes with {CONFIG} in the command", where="--template", hint="write both or neither")
        if self.config is not None:
            read_document(self.config)
        if REDACTED in " ".join(filter(None, (self.start, self.wait_for, self.cancel))):
            raise UsageError("a secret was left out of the command on record", where="--command", hint="give it again")

    def script(self, overrides: Overrides, plan: str, name: str, folder: Path) -> str:
        """For ``sh``: exports, the command, then what waits for it."""
        fill = self._fill(overrides, plan, name, folder)
        if self.config is not None:
            changed = write_changed(self.config, settings_document(overrides), folder)
            fill["config"] = shlex.quote(str(changed))
        lines = [*overrides.exports, _filled(self.start, fill)]
        return "\n".join(lines) + (f" && {{\n{_filled(self.wait_for, fill)}\n}}" if self.wait_for else "")

    def pasted(self, overrides: Overrides, plan: str) -> str:
        """Exports and the command with what a configuration sets; the words alone where they go into a file."""
        fill = self._fill(overrides, plan, "best", Path())
        return "\n".join((*overrides.exports, _filled(self.start, fill), *([overrides.text] if self.config else ())))

    def _fill(self, overrides: Overrides, plan: str, name: str, folder: Path) -> dict[str, str]:
        """What stands in each place; nothing where a setting of a user's own space has no value."""
        said = dict(word.split("=", 1) for word in shlex.split(plan)) if self.places else {}
        return {
            "overrides": words(overrides), "without": shlex.quote(" ".join(left_out(overrides))), "try": name,
            "plan": shlex.quote(plan), "folder": shlex.quote(str(folder)),
            **{key: shlex.quote(said[key]) if said.get(key) else "" for key in self.places},
        }  # fmt: skip

    def tracked(self, name: str, folder: Path) -> str | None:
        """The tracker's run of a try, if there is one."""
        return self.steps_from and _filled(self.steps_from, {"try": name, "folder": str(folder)})

    def cancellation(self, name: str, folder: Path) -> str | None:
        """The script that cancels a try, if there is one."""
        return self.cancel and _filled(self.cancel, {"try": name, "folder": shlex.quote(str(folder))})


_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LONGEST_NAME = 39  # signs, as xpk says


def name_of_try(session: str, number: str) -> str:
    """A name that no other try has, and that Kubernetes, xpk, SLURM and Ray take (RFC 1035; 39 signs, as xpk says)."""
    plain_name = f"asap-{session}-{number}"
    if _NAME.fullmatch(plain_name) and len(plain_name) <= _LONGEST_NAME:
        return plain_name
    return f"asap-{hashlib.sha256(session.encode()).hexdigest()[:16]}-{number}"


def _filled(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template
