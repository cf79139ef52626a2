"""Scripts that start a program with a YAML of its settings, or a stack with settings as options:
``axolotl train run.yml --micro-batch-size 4``, ``torchrun train.py sft.yaml``, ``llamafactory-cli train --bf16``."""

import re
from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.accelerate.trainer_file import is_training_file
from asap.experiments.files.documents import Document, below_variable, find_named, missing
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.shell import Command, Start, has_substitution, options, words
from asap.experiments.training_program import check_program
from asap.stacks.registry import is_claimed
from asap.stacks.stack_settings import dotted

_FACTORY = re.compile(r"\bllamafactory-cli\s+train\s+(.*)", re.DOTALL)
_PROGRAM = re.compile(
    r"(?:\btorchrun|\btorch\.distributed\.(?:run|launch)|(?:^|[\s/])deepspeed)\s"
    r"(?:.{0,800}?\s)?(?:(?P<file>\S+\.py)|-m\s+(?P<module>[\w.-]+))\s+(?P<said>['\"]?\S+\.ya?ml\b.*)",
    re.DOTALL,
)
_YAML = (".yaml", ".yml")
_ASSIGNED = re.compile(r"(\w[\w.]*)=(.*)", re.ASCII | re.DOTALL)
_MEGATRON, _ON = "USE_MCA", ("1", "true", "y", "yes", "on")


def starts(command: Command) -> bool:
    """Whether a command starts a program with a YAML, or LLaMA-Factory with options."""
    text = command.text
    return any(form.search(text) for form in (_FACTORY, _PROGRAM))


def document_of(started: Start) -> tuple[Document, bool] | None:
    """The settings that a command starts a program with, those of the command on top of those of the YAML, and whether
    there is a YAML, or options alone; ``None`` where it starts none so, or the YAML is not there.

    Raises:
        ConfigError: it is malformed, or the program does something else than train a decoder on tokens.
    """
    text, path = started.command.text, started.path
    factory, program = _FACTORY.search(text), _PROGRAM.search(text)
    if factory is None:
        document = _add_yaml(program["said"], started) if program else None
        if program is None or document is None:
            return None
        if not (is_training_file(document.values) or is_claimed(dotted(document.values))):
            return None
        check_program(program["file"] or program["module"], path)
        return document, True
    if started.environment.get(_MEGATRON, "").casefold() in _ON:
        reason = f"sets {_MEGATRON}: LLaMA-Factory trains by Megatron then, which is not read"
        raise ConfigError(reason, where=str(path), hint="give the model, --hardware, --batch, --sequence and --plan")
    if (found := _add_yaml(factory[1], started)) is not None:
        return found, True
    first = next(iter(words(factory[1])), "")
    if has_substitution(first) or first.endswith(_YAML):
        raise missing("trains", below_variable(first), path, "lay it beside the script, or give it as --config")
    document = Document(path, _settings(factory[1]), {})
    return (document, False) if is_training_file(document.values) else None


def _add_yaml(said: str, started: Start) -> Document | None:
    """The YAML that a command names, with the settings that follow it, if it is there."""
    named = next((below for word in words(said) if (below := below_variable(word)).endswith(_YAML)), "$")
    if has_substitution(named):
        return None
    if (found := find_named(named, started.path, started.files)) is None:
        return None
    document = found.document()
    return Document(document.path, {**document.values, **_settings(said)}, document.lines)


def _settings(said: str) -> dict[str, Any]:
    """Settings of a command as the YAML has them; one that only a run can tell stays as it is written."""
    pairs = {option.name: " ".join(option.words) if option.words else "true" for option in options(said)}
    pairs |= {found[1]: found[2] for word in words(said) if (found := _ASSIGNED.fullmatch(word))}
    return {key: value if has_substitution(value) else parse_yaml(value, f"--{key}")[0] for key, value in pairs.items()}
