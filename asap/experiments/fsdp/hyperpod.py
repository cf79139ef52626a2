"""Recipes of SageMaker HyperPod with SageMaker's model parallelism or FSDP: ``python3 main.py
recipes=training/llama/hf_llama3_8b_seq8k_gpu_p5x16_pretrain recipes.model.train_batch_size=4``, or the YAML alone
(aws/sagemaker-hyperpod-recipes, ``recipes_collection/recipes``)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, find_named
from asap.experiments.fsdp.composer import resolved
from asap.experiments.fsdp.reader import read_program
from asap.experiments.fsdp.settled import settled_apart
from asap.experiments.launch.job import with_devices
from asap.experiments.named_model import NO_MODEL, name_at_end, read_named_model
from asap.experiments.settings.optimizer_names import optimizer_family
from asap.experiments.settings.stack_settings import StackSettings, dotted, overriding
from asap.experiments.settings.unused_settings import note_on_unused
from asap.experiments.shell import Command, read_commands, with_sources, words
from asap.hardware.instances import find_instance
from asap.models import Architecture, Workload
from asap.stacks.registry import spec

_START = re.compile(r"\bmain\.py['\"]?\s(?:[^;&|]*\s)?recipes=(?P<recipe>['\"]?[\w./-]+)")
_PLACES = ("recipes_collection/recipes/{}.yaml", "hyperpod_recipes/recipes_src/{}.yaml", "recipes/{}.yaml")
_PREFIX, _MACHINE = "recipes.", "instance_type"
_ASSIGNED = re.compile(r"\+*([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_SHAPES = {
    "layers": "num_hidden_layers", "d_model": "hidden_size", "d_ff": "intermediate_size",
    "heads": "num_attention_heads", "kv_heads": "num_key_value_heads", "vocab": "vocab_size",
}  # fmt: skip
_PARTLY, _PREFERENCES, _EXPERTS = "model.peft.peft_type", "model.dpo.enabled", "model.expert_model_parallel_degree"
_UNUSED = {"model.offload_activations": False}
_INSTEAD = "give the model, --hardware, --batch, --sequence and --plan"


def is_hyperpod_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is such a recipe."""
    model, trainer = values.get("model"), values.get("trainer")
    if not isinstance(model, dict) or not isinstance(trainer, dict) or "use_smp_model" not in values:
        return False
    named = "hf_model_name_or_path" in model or _SHAPES["layers"] in model
    return named and {"train_batch_size", "max_context_width"} <= model.keys()


def is_hyperpod_script(text: str) -> bool:
    """Whether a script starts a recipe."""
    return "recipes=" in text and any(map(_is_start, read_commands(text)))


def is_setting(key: str) -> bool:
    """Whether an override is a setting, with the prefix that the launcher takes or without."""
    section, _, name = key.removeprefix(_PREFIX).partition(".")
    own = section in ("trainer", "run", "exp_manager", "use_smp_model", _MACHINE)
    return key.startswith(_PREFIX) or own or (section == "model" and name not in Architecture.model_fields)


def read_hyperpod_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: its recipe is not there or of another kind, not all parameters are trained on tokens, or a value is
            of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    start = next(filter(_is_start, read_commands(with_sources(text, path.parent, brought))))
    recipe = _START.search(start.text)["recipe"].strip("'\"")  # pyright: ignore[reportOptionalSubscript]
    found = next((file for place in _PLACES if (file := find_named(place.format(recipe), path, brought))), None)
    if found is None:
        reason = f"starts the recipe {plain(recipe, 80)} of SageMaker HyperPod, which is not there"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint="lay its YAML beside the script, in recipes/")
    values = found.document().values
    if not is_hyperpod_file(values):
        reason = f"starts {plain(recipe, 80)}, a recipe of SageMaker HyperPod of a kind that is not read"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint=_INSTEAD)
    given = {said[1]: said[2] for word in words(start.text) if (said := _ASSIGNED.fullmatch(word))}
    given = {key: value for key, value in given.items() if key.startswith(_PREFIX) or key == _MACHINE}
    return _read({**dotted(values), **_plain(given)}, path, overrides, experiment)


def read_hyperpod_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a YAML says; raises like :func:`read_hyperpod_script`."""
    return _read(dotted(values), path, overrides, experiment)


def _read(said: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    said = {**said, **_plain(overriding(overrides))}
    known = {key: resolved(_absolute(key, value), said) for key, value in said.items()}
    known = {key: value for key, value in known.items() if value is not None and str(value) != "null"}
    settings, unsettled = settled_apart(known, path)
    _check(settings)
    devices = (settings.count("trainer.devices") or 0) * (settings.count("trainer.num_nodes", 1) or 1)
    machine = settings.text(_MACHINE, "") or ""
    known_machine = machine.removeprefix("ml.") if find_instance(machine.removeprefix("ml.")) else None
    experiment = with_devices(devices, known_machine, experiment, str(path))
    notes: tuple[str, ...] = ()
    if experiment.model is None:
        model, notes = _model(settings)
        experiment = experiment.model_copy(update={"model": model})
    precision = (
        "fp8" if settings.flag("model.fp8") else (settings.text("trainer.precision", "bf16") or "").split("-")[0]
    )
    if precision not in ("fp8", "bf16", "fp16", "fp32"):
        raise ConfigError(f"precision {plain(precision, 40)} is not read", where=str(path), hint="such as bf16")
    workload = Workload(
        sequence_length=settings.count("model.max_context_width"),
        precision=precision,
        optimizer=optimizer_family(settings.text("model.optim.name")),
        attention="flash" if settings.flag("model.use_flash_attention") else None,
    )
    read = read_program(settings, spec("hyperpod"), path, experiment, None, workload, unsettled)
    return read.model_copy(update={"notes": (*read.notes, *notes, *note_on_unused(settings, _UNUSED))})


def _check(settings: StackSettings) -> None:
    """Raise ConfigError where not all parameters are trained on tokens, or experts are split."""
    where = settings.where()
    if settings.text(_PARTLY):
        reason = f"{_PARTLY}={plain(settings[_PARTLY], 40)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=where, hint="give a recipe that trains all parameters")
    if settings.flag(_PREFERENCES):
        raise ConfigError(f"{_PREFERENCES}: training on preferences is not modelled", where=where, hint=_INSTEAD)
    if (settings.whole(_EXPERTS) or 1) > 1 or settings.flag("model.moe"):
        raise ConfigError("experts of SageMaker's model parallelism are not read", where=where, hint=_INSTEAD)


def _model(settings: StackSettings) -> tuple[Architecture | None, tuple[str, ...]]:
    shapes = {field: settings.count(f"model.{key}") for field, key in _SHAPES.items()}
    if all(shapes.values()):
        width, heads = shapes["d_model"] or 1, shapes["heads"] or 1
        own = Architecture.model_validate({**shapes, "head_dim": width // heads})
        return own.model_copy(update={"tied_embeddings": settings.flag("model.tie_word_embeddings")}), ()
    named = settings.text("model.hf_model_name_or_path")
    name = name_at_end(named) if named else None
    return read_named_model(name) if name else (None, (NO_MODEL,))


def _absolute(key: str, value: Any) -> Any:
    """A reference by its whole name: ``${.max_context_width}`` in ``model``, ``${recipes.trainer.precision}``."""
    if not isinstance(value, str):
        return value
    section = key.rpartition(".")[0]
    return value.replace("${.", f"${{{section}." if section else "${").replace(f"${{{_PREFIX}", "${")


def _plain(said: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(_PREFIX): value for key, value in said.items()}


def _is_start(command: Command) -> bool:
    return not command.assigns and command.certain and _START.search(command.text) is not None
