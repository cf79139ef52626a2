"""Arguments of a program on Hugging Face's libraries, and options of Accelerate's launcher, as commands and files say
them."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, named_document, parse_document
from asap.experiments.huggingface_model import model_named_in, name_at_end
from asap.experiments.remarks import table_notes
from asap.experiments.shell import has_substitution, options
from asap.stacks.accelerate import stack as accelerate
from asap.stacks.deepspeed import stack as inline
from asap.stacks.reading import is_on
from asap.stacks.registry import spec, specs
from asap.stacks.stack_settings import StackSettings, overriding
from asap.stacks.trainer.arguments import TRAINER
from asap.stacks.unread import near_misses

ARGUMENTS = TRAINER.words
OWN = frozenset(
    [
        accelerate.KIND, accelerate.PROCESSES, accelerate.MACHINES, accelerate.FSDP, accelerate.SIZES, inline.CONFIG,
        "mixed_precision",
    ]
)  # fmt: skip
"""Sections and settings of Accelerate's configuration."""
_OF_DEEPSPEED = frozenset(spec("deepspeed").names["signs"])


def is_setting(key: str) -> bool:
    """Whether an override is one of Accelerate's or DeepSpeed's settings, or an argument of the program."""
    return key.partition(".")[0] in OWN | _OF_DEEPSPEED or key in ARGUMENTS - {"model"}


def split_overrides(overrides: Iterable[str]) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Accelerate's own settings, arguments of the program, and ``key=value`` of DeepSpeed's; raises UsageError."""
    given = overriding(overrides)
    own = {key: value for key, value in given.items() if key.partition(".")[0] in OWN}
    rest = [key for key in given if key.partition(".")[0] in _OF_DEEPSPEED and key not in {*own, *ARGUMENTS}]
    arguments = {key: value for key, value in given.items() if key not in {*own, *rest}}
    return own, arguments, [f"{key}={given[key]}" for key in rest]


_CONFIG = "config"  # the argument of a program that names a YAML of further ones (TRL's ``TrlParser``)


def add_file(arguments: Mapping[str, Any], path: Path, brought: Brought) -> dict[str, Any]:
    """Arguments over those of the YAML that they name.

    Raises:
        ConfigError: it is not there, or not a mapping.
    """
    named = arguments.get(_CONFIG)
    if not isinstance(named, str) or not named.endswith((".yaml", ".yml", ".json")):
        return dict(arguments)
    found = named_document("names the arguments in", named, path, "lay it beside the file", brought)
    return {**found.values, **{key: value for key, value in arguments.items() if key != _CONFIG}}


def mapping_of(stated: Mapping[str, Any], key: str, path: Path, brought: Brought) -> Mapping[str, Any]:
    """A mapping of an argument: itself, as JSON, or in the file that it names."""
    said = stated[key]
    if isinstance(said, Mapping):
        return said
    text = str(said).strip()
    if text.startswith("{"):
        return parse_document(text, path / f"{key}.json").values
    return named_document(f"names the {key}", text, path, "lay it beside the file", brought).values


KINDS = {"use_fsdp": "FSDP", "use_deepspeed": "DEEPSPEED", "multi_gpu": "MULTI_GPU"}
_BY_NAME = {
    word.rpartition(".")[2]: word
    for word in (*spec("accelerate").words, *inline.OF_ACCELERATE.values(), inline.IN_FILE)
    if word.partition(".")[0] in (accelerate.FSDP, accelerate.SIZES, inline.CONFIG)
}
"""Options of Accelerate's command, with the setting of its file."""
_NOT = "no_"
_VARIABLE = re.compile(r"\$\{?\w+(?:\[[@*]\])?\}?", re.ASCII)


def said(text: str) -> dict[str, Any]:
    """Options by name; several words as a text, a switch as true, ``--no_packing`` as a false ``packing``."""
    found: dict[str, Any] = {}
    for option in options(text):
        negated = not option.words and option.name.startswith(_NOT)
        name = option.name.removeprefix(_NOT) if negated else option.name
        # variables after a value hold further options: --lr 1e-5 $EXTRA
        value = [word for place, word in enumerate(option.words) if not place or not _VARIABLE.fullmatch(word)]
        found[name] = " ".join(value) if value else not negated
    return found


def command_options(known: Mapping[str, Any]) -> dict[str, Any]:
    """Options of Accelerate's own command as settings by dotted key, which win over its file."""
    found: dict[str, Any] = {
        key: known[key] for key in (accelerate.PROCESSES, accelerate.MACHINES, "mixed_precision") if key in known
    }
    if kind := next((kind for option, kind in KINDS.items() if known.get(option)), None):
        found[accelerate.KIND] = kind
    return found | {_BY_NAME[key]: value for key, value in known.items() if key in _BY_NAME}


_MODEL = TRAINER.model.name.keys if TRAINER.model.name else ()
_FILES = ("deepspeed", accelerate.OPTION)


def settled(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without those that only a run can tell, or that say no model; of a model's folder, or a configuration,
    below a variable the name is enough."""
    found: dict[str, Any] = {}
    for key, value in stated.items():
        if key in _MODEL:
            named = name_at_end(value) if isinstance(value, str) else value
            found |= {key: named} if named is not True and (named is not None or value is None) else {}
        elif not has_substitution(str(value)) or (key in _FILES and str(value).endswith(".json")):
            found[key] = value
    return found


def add_model(arguments: StackSettings, path: Path, experiment: Experiment) -> Experiment:
    """``experiment`` with the model that the arguments name, where none is said."""
    name = next((arguments.text(key) for key in _MODEL if key in arguments), None)
    if name is None or experiment.model is not None:
        return experiment
    model, notes = model_named_in(path, name)
    return experiment.knowing(*notes, model=model)


_OF_PROGRAM = re.compile(r"(?:use_|enable_)?(?:compile(?:_model)?|(?:cpu_|activation_)?offload(?:_\w+)?)")
"""Switches of a program's own that change the step and that no library has."""
_TRAINED = re.compile(
    r"(?!.*(?:vit|vision|visual|image|audio|align|project))"
    r"(?:(?:\w+_)?(?:freeze|frozen|teacher|distil\w*)(?:_\w+)?|(?:train|tune|update)_only(?:_\w+)?|only_(?:train|tune)\w*)"
)
"""Arguments of a program's own that say which parameters of a decoder are trained, or by which other model."""
_OFF = ("", "0", "0.0", "false", "no", "none", "null", "[]")


@cache
def _of_others() -> frozenset[str]:
    """Settings of other programs, which are no misspelt arguments."""
    return frozenset(["model_type", *(word for one in specs().values() for word in one.words)])


def notes_on(said: StackSettings) -> tuple[str, ...]:
    """What is modelled otherwise than it runs."""
    own = [key for key in sorted(said) if _OF_PROGRAM.fullmatch(key) and is_on(said, key)]
    own += [key for key in sorted(said) if _TRAINED.fullmatch(key) and str(said[key]).casefold() not in _OFF]
    shown = ", ".join(f"--{plain(key, 40)}" for key in own)
    unread = (f"not read, as only the program knows what it changes: {shown}",) if own else ()
    length = digits(str(TRAINER.cut.said(said))) if TRAINER.cut and not said.flag("packing") else None
    misspelt = near_misses(said.keys() - ARGUMENTS - _of_others(), ARGUMENTS)
    return (*unread, *misspelt, *table_notes(TRAINER, said, length))
