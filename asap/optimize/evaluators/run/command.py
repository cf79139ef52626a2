"""The user's command with a configuration filled in, as a script for the shell."""

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from asap.core.errors import UsageError
from asap.core.text import REDACTED
from asap.proposals.proposal import Overrides

OVERRIDES = "{overrides}"


@dataclass(frozen=True)
class Command:
    """What starts a try, what it is waited for with where that returns at once, and what cancels it there.

    In each, ``{overrides}`` stands for the launcher's words, ``{plan}`` for the plan, ``{try}`` for a name of the try
    that no other has, ``{folder}`` for a folder of its own.

    Args:
        start: run by a shell; has to contain ``{overrides}``.
        wait_for: run after it; its output is the log, and the try lasts as long as it.
        cancel: run when a try is stopped before its end.
        steps_from: run of a tracker that has the step times, where the log has none.
    """

    start: str
    wait_for: str | None = None
    cancel: str | None = None
    steps_from: str | None = None

    def __post_init__(self) -> None:
        if OVERRIDES not in self.start:
            hint = "write it where the launcher takes settings: './train.sh {overrides}'"
            raise UsageError(
                f"the command has no {OVERRIDES}, so every try would be the same", where="--command", hint=hint
            )
        if REDACTED in " ".join(filter(None, (self.start, self.wait_for, self.cancel))):
            raise UsageError("a secret was left out of the command on record", where="--command", hint="give it again")

    def script(self, overrides: Overrides, plan: str, name: str, folder: Path) -> str:
        """For ``sh``: exports, the command, then what waits for it."""
        fill = {
            "overrides": words(overrides),
            "plan": shlex.quote(plan),
            "try": name,
            "folder": shlex.quote(str(folder)),
        }
        lines = [*overrides.exports, _filled(self.start, fill)]
        return "\n".join(lines) + (f" && {{\n{_filled(self.wait_for, fill)}\n}}" if self.wait_for else "")

    def tracked(self, name: str, folder: Path) -> str | None:
        """The tracker's run of a try, if there is one."""
        return self.steps_from and _filled(self.steps_from, {"try": name, "folder": str(folder)})

    def cancellation(self, name: str, folder: Path) -> str | None:
        """The script that cancels a try, if there is one."""
        return self.cancel and _filled(self.cancel, {"try": name, "folder": shlex.quote(str(folder))})


def words(overrides: Overrides) -> str:
    """The launcher's words as arguments of a shell command: flags where they are a file's, JSON in one word."""
    if overrides.stack == "torchtitan":
        return " ".join(shlex.quote(f"--{key}={value}") for key, value in asked_settings(overrides).items())
    return shlex.quote(overrides.text) if overrides.stack == "deepspeed" else " ".join(overrides.text.split("\n"))


def asked_settings(overrides: Overrides) -> dict[str, str]:
    """Names and values that a log may show: of ``key=value``, ``--key value``, TOML or JSON."""
    if overrides.stack in ("torchtitan", "deepspeed"):
        document = (tomllib if overrides.stack == "torchtitan" else json).loads(overrides.text)
        return {key: _written(value) for key, value in _flat(document)}
    found: dict[str, str] = {}
    pending = None
    for word in shlex.split(overrides.text):
        if word.startswith("--"):
            pending = word[2:].replace("-", "_")
            found[pending] = "true"
        elif pending is not None:
            found[pending], pending = word, None
        elif "=" in word:
            key, _, value = word.partition("=")
            found[key] = value
    return found


def _flat(document: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _filled(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template
