"""What Accelerate's launcher or no launcher starts, and its settings that the Trainer's arguments stand for."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, find_named, missing, parse_document
from asap.experiments.processes import visible_gpus, with_devices
from asap.experiments.shell import check_made, has_substitution, options
from asap.stacks.accelerate import stack as accelerate
from asap.stacks.accelerate.stack import FSDP, OPTION, WORDS, is_fsdp, of_option
from asap.stacks.deepspeed import stack as inline
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings

PRESETS: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    Path(accelerate.__file__).with_name("presets.toml").read_text(encoding="utf-8")
)
CONFIG = "config"
"""The argument of a program that names a YAML of further ones (TRL's ``TrlParser``)."""


def with_file(arguments: Mapping[str, Any], path: Path, brought: Brought | None = None) -> dict[str, Any]:
    """Arguments over those of the YAML that they name.

    Raises:
        ConfigError: it is not there, or not a mapping.
    """
    named = arguments.get(CONFIG)
    if not isinstance(named, str) or not named.endswith((".yaml", ".yml", ".json")):
        return dict(arguments)
    check_made(named, brought or {}, path)
    found = find_named(named, path, brought)
    if found is None:
        raise missing("names the arguments in", named, path, "lay it beside the file")
    return {**found.document().values, **{key: value for key, value in arguments.items() if key != CONFIG}}


_EMPTY = ("", "none", "null")


def is_said(settings: StackSettings, key: str) -> bool:
    """Whether a key has a value that is known."""
    text = str(settings.get(key, "")).strip()
    return text.casefold() not in _EMPTY and not has_substitution(text) and "{{" not in text


KINDS = {"use_fsdp": "FSDP", "use_deepspeed": "DEEPSPEED", "multi_gpu": "MULTI_GPU"}
_BY_NAME = {
    word.rpartition(".")[2]: word
    for word in (*spec("accelerate").words(), *inline.OF_ACCELERATE.values(), inline.IN_FILE)
    if word.partition(".")[0] in (FSDP, accelerate.SIZES, inline.CONFIG)
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
        found[name] = " ".join(_value(option.words)) if option.words else not negated
    return found


def _value(words: Sequence[str]) -> Sequence[str]:
    """The words of a value, without variables after it that hold further options: ``--lr 1e-5 $EXTRA``."""
    return [word for place, word in enumerate(words) if not place or not _VARIABLE.fullmatch(word)]


def of_command(known: Mapping[str, Any]) -> dict[str, Any]:
    """Options of Accelerate's own command as settings by dotted key, which win over its file."""
    found: dict[str, Any] = {
        key: known[key] for key in (accelerate.PROCESSES, accelerate.MACHINES, "mixed_precision") if key in known
    }
    if kind := next((kind for option, kind in KINDS.items() if known.get(option)), None):
        found[accelerate.KIND] = kind
    return found | {_BY_NAME[key]: value for key, value in known.items() if key in _BY_NAME}


PYTHON = re.compile(r"(?:^|[\s/])python[\d.]*(?=\s)")
_SEVERAL = re.compile(r"(?:^|[\s/])(?:srun|mpirun|mpiexec)\s")
_OF_XLA = re.compile(r"\b(?:XLA_USE_SPMD|PJRT_DEVICE|torch_xla|xla_spawn)\b|--spmd_\w+")
_RANK = re.compile(r"^[ \t]*(?:export\s+)?(?:LOCAL_)?RANK=", re.MULTILINE)
"""What a script gives a process that is one of several: ``export RANK=$SLURM_PROCID``."""
_WORLD = "WORLD_SIZE"
_INSTEAD = "give the model, --hardware, --batch, --sequence and --plan"
_ONE = "python starts one process, taken as one device: on several, the Trainer's DataParallel is not modelled"


def in_one_process(
    start: str, script: str, environment: Mapping[str, str], path: Path, experiment: Experiment
) -> Experiment:
    """``experiment`` with the one device of such a program, where no hardware is said; with all ranks where the script
    says that it is one of several.

    Args:
        start: the command.
        script: that has it.
        environment: variables that it finds.
        path: the file that has it.
        experiment: what is known besides.

    Raises:
        ConfigError: the process drives several devices by itself.
    """
    if _OF_XLA.search(script) or any(map(_OF_XLA.fullmatch, environment)):
        raise ConfigError("trains by PyTorch/XLA, which is not read", where=str(path), hint=_INSTEAD)
    ranks, several = digits(environment.get(_WORLD, "")), visible_gpus(environment)
    if (ranks or 0) > 1 or (ranks is None and _RANK.search(script)):
        return with_devices(ranks, experiment)
    if several is not None and several > 1:
        reason = f"starts one process on {several} GPUs: the Trainer's DataParallel is not modelled"
        raise ConfigError(reason, where=str(path), hint=f"start it under torchrun --nproc_per_node {several}")
    if _SEVERAL.search(start):
        return experiment
    unsaid = experiment.hardware.devices is None and several is None
    return with_devices(1, experiment).knowing(*((_ONE,) if unsaid else ()))


_CONFIG, ACCELERATOR, _EACH = "fsdp_config", "accelerator_config", "sync_each_batch"
_WORD = re.compile(r"\w+", re.ASCII)
_ON, _OFF = ("true", "1"), ("", "false", "none", "0")
_PREFIX = "fsdp_"


def of_trainer(stated: Mapping[str, Any], path: Path, brought: Brought) -> dict[str, Any]:
    """Accelerate's settings, by dotted key, that arguments of the Trainer stand for.

    Args:
        stated: arguments by name.
        path: the file that says them.
        brought: files that come along with it.

    Raises:
        ConfigError: the option has a word that the Trainer has not, or the file that is named is not there.
    """
    said = stated.get(OPTION)
    text = " ".join(map(str, said)) if isinstance(said, list) else str(said or "").casefold()
    words = [] if text in _OFF else [WORDS[0]] if text in _ON else _WORD.findall(text.casefold())
    if unknown := next((word for word in words if word not in (*WORDS, "offload", "auto_wrap")), None):
        known = ", ".join((*WORDS, "offload", "auto_wrap"))
        raise ConfigError(f"{OPTION} has no option {plain(unknown, 40)}", where=str(path), hint=f"known are {known}")
    settings = of_option(" ".join(words))
    if not is_fsdp(settings) or stated.get(_CONFIG) is None:
        return settings
    own = mapping_of(stated, _CONFIG, path, brought)
    return settings | {f"{FSDP}.{_PREFIX}{key.removeprefix(_PREFIX)}": value for key, value in own.items()}


def syncs_each_batch(said: StackSettings, path: Path, brought: Brought) -> bool | None:
    """Whether gradients are scattered in every microbatch (``accelerator_config``); ``None`` where it is not said.

    Raises:
        ConfigError: it is no truth value, or the file that is named is not there.
    """
    if ACCELERATOR not in said:
        return None
    kwargs = mapping_of(said, ACCELERATOR, path, brought).get("gradient_accumulation_kwargs")
    inner = StackSettings(kwargs if isinstance(kwargs, Mapping) else {}, str(path))
    return inner.flag(_EACH) if _EACH in inner else None


def mapping_of(stated: Mapping[str, Any], key: str, path: Path, brought: Brought) -> Mapping[str, Any]:
    """A mapping of an argument: itself, as JSON, or in the file that it names."""
    said = stated[key]
    if isinstance(said, Mapping):
        return said
    text = str(said).strip()
    if text.startswith("{"):
        return parse_document(text, path / f"{key}.json").values
    found = find_named(text, path, brought)
    if found is None:
        raise missing(f"names the {key}", text, path, "lay it beside the file")
    return found.document().values
