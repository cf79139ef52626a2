"""The user's command with a configuration filled in, as a script for the shell."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asap.core.errors import UsageError
from asap.core.text import REDACTED
from asap.optimize.evaluators.run.configuration_file import read_document, write_changed
from asap.optimize.evaluators.run.settings import asked_settings, is_yaml, left_out, settings_document
from asap.proposals.proposal import Overrides
from asap.stacks.accelerate.settings import OF_PROGRAM
from asap.stacks.torchtitan.lines import flags, is_python, plain_values

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
    """

    start: str
    wait_for: str | None = None
    cancel: str | None = None
    steps_from: str | None = None
    config: Path | None = None

    def __post_init__(self) -> None:
        if OVERRIDES not in self.start and CONFIG not in self.start:
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
        fill = {
            "overrides": words(overrides),
            "without": shlex.quote(" ".join(left_out(overrides))),
            "plan": shlex.quote(plan),
            "try": name,
            "folder": shlex.quote(str(folder)),
        }
        if self.config is not None:
            changed = write_changed(self.config, settings_document(overrides), folder)
            fill["config"] = shlex.quote(str(changed))
        lines = [*overrides.exports, _filled(self.start, fill)]
        return "\n".join(lines) + (f" && {{\n{_filled(self.wait_for, fill)}\n}}" if self.wait_for else "")

    def tracked(self, name: str, folder: Path) -> str | None:
        """The tracker's run of a try, if there is one."""
        return self.steps_from and _filled(self.steps_from, {"try": name, "folder": str(folder)})

    def cancellation(self, name: str, folder: Path) -> str | None:
        """The script that cancels a try, if there is one."""
        return self.cancel and _filled(self.cancel, {"try": name, "folder": shlex.quote(str(folder))})


def words(overrides: Overrides) -> str:
    """The launcher's words as arguments of a shell command: flags where they are TOML, JSON or YAML in one word."""
    if overrides.stack == "torchtitan":
        python = is_python(overrides.text)
        return shlex.join(flags(plain_values(overrides.text) if python else asked_settings(overrides)))
    if overrides.stack == "accelerate" and overrides.text.startswith(OF_PROGRAM):
        return overrides.text.partition("\n")[2]
    options = overrides.stack in ("deepspeed", "megatron") and overrides.text.startswith(("--", "# "))
    if options and not (overrides.stack == "deepspeed" and "\n" in overrides.text):
        return overrides.text.partition("# ")[0].strip()
    document = overrides.stack in ("deepspeed", "nanotron", "axolotl", "accelerate", "primus")
    document = document or (overrides.stack in ("megatron", "settings") and is_yaml(overrides.text))
    return shlex.quote(overrides.text) if document else " ".join(overrides.text.split("\n"))


def _filled(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template
