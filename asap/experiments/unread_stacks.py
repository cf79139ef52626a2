"""Configurations of stacks that are known and not read, with what to give instead."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.megatron.yaml_dialects import dialect
from asap.experiments.named_model import SHAPES

_INSTEAD = (
    f"give the model's config.json as --config, or {SHAPES} without it, and --hardware, --batch, --sequence and --plan"
)
_NEOX = ("pipe_parallel_size", "pipe-parallel-size", "model_parallel_size", "model-parallel-size")
_TRAINER = {
    "mp", "train_batch_size", "fsdp_axis", "batch_axis", "per_device_parallelism", "mesh", "model_axis_size",
}  # fmt: skip

_MOSAIC = {"global_train_batch_size", "device_train_microbatch_size"}


@dataclass(frozen=True)
class Unread:
    """A mapping of a stack that is not read.

    Args:
        name: what it is, for a sentence.
        instead: what to give.
        fits: whether a mapping is one.
    """

    name: str
    instead: str
    fits: Callable[[Mapping[str, Any]], bool]


def _within(values: Mapping[str, Any], *path: str) -> Any:
    node: Any = values
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _has(values: Mapping[str, Any], section: str, keys: set[str]) -> bool:
    """Whether a section has one of some keys."""
    found = values.get(section)
    return isinstance(found, dict) and bool(keys & found.keys())


_MAPPINGS = (
    Unread(
        "torchtune recipe",
        _INSTEAD,
        lambda v: any("torchtune" in str(_within(v, key, "_component_")) for key in ("model", "tokenizer")),
    ),
    Unread("NeMo AutoModel recipe", _INSTEAD, lambda v: "nemo_automodel." in str(_within(v, "model", "_target_"))),
    Unread("Levanter configuration", _INSTEAD, lambda v: _has(v, "trainer", _TRAINER)),
    Unread(
        "GPT-NeoX configuration",
        _INSTEAD,
        lambda v: any(v.get(key) is not None for key in _NEOX),
    ),
    Unread("verl configuration of reinforcement learning", _INSTEAD, lambda v: "actor_rollout_ref" in v),
    Unread(
        "OLMo configuration",
        _INSTEAD,
        lambda v: _has(v, "model", {"d_model"}) and bool({"tokenizer", "optimizer"} & v.keys()) and v.keys() >= _MOSAIC,
    ),
    Unread(
        "configuration of LLM Foundry",
        _INSTEAD,
        lambda v: "train_loader" in v and isinstance(v.get("model", v.get("models")), dict | list),
    ),
    Unread("Lingua configuration", _INSTEAD, lambda v: _has(v, "distributed", {"fsdp_type", "dp_shard"})),
    Unread("AXLearn configuration", _INSTEAD, lambda v: "axlearn." in f"{v.get('klass')} {v.get('model')}"),
    Unread(
        "table of Megatron-Bridge's performance runs",
        "give run_config.yaml, which a run of it writes into its checkpoint",
        lambda v: "perf_matrix" in v and "ConfigContainer" in v,
    ),
    Unread(
        "configuration of LLaMA-Factory that does not train",
        "give the one that trains, with do_train: true",
        lambda v: (
            {"finetuning_type", "model_name_or_path"} <= v.keys()
            and not v.get("do_train")
            and "per_device_train_batch_size" not in v
        ),
    ),
    Unread("configuration of a program of Lightning", _INSTEAD, lambda v: _has(v, "model", {"class_path"})),
    Unread(
        "recipe of SageMaker HyperPod",
        _INSTEAD,
        lambda v: (
            "use_smp_model" in v
            or _has(v, "model", {"shard_degree", "hf_model_name_or_path"})
            or ("training_config" in v and bool({"instance_types", "display_name"} & v.keys()))
        ),
    ),
    Unread("NeMo 2 recipe", _INSTEAD, lambda v: isinstance(_within(v, "trainer", "strategy"), dict)),
    Unread(
        "NeMo configuration of another model than a decoder",
        "give the configuration of a language model (model.num_layers, model.hidden_size …)",
        lambda v: (
            "trainer" in v and bool({"exp_manager", "model", "init_from_nemo_model"} & v.keys()) and dialect(v) is None
        ),
    ),
    Unread(
        "LLaMA-Factory configuration of version 1",
        f"give the DeepSpeed JSON of dist_config.config_file if there is one; else {_INSTEAD}",
        lambda v: "micro_batch_size" in v and bool({"dist_config", "train_dataset"} & v.keys()),
    ),
)

Named = tuple[re.Pattern[str], str, str]
"""What a text has that is of a stack, what the file then is, and what to give instead."""

PROGRAMS: tuple[Named, ...] = (
    (re.compile(r"^\s*(from|import) olmo_core\b", re.MULTILINE), "OLMo-core program", _INSTEAD),
    (re.compile(r"^\s*(from|import) (easydel|eformer)\b", re.MULTILINE), "EasyDeL program", _INSTEAD),
    (re.compile(r"^\s*(from|import) (levanter|marin)\b", re.MULTILINE), "Levanter or Marin program", _INSTEAD),
    (re.compile(r"^\s*(from|import) axlearn\b", re.MULTILINE), "AXLearn program", _INSTEAD),
    (
        re.compile(r"^\s*(from|import) torchtitan\b", re.MULTILINE),
        "torchtitan program",
        "give the JSON that a run of it writes with --debug.save_config_file=FILE",
    ),
    (
        re.compile(r"^\s*(from|import) megatron\.bridge\b", re.MULTILINE),
        "Megatron-Bridge program that runs no recipe",
        "give run_config.yaml, which a run of it writes into its checkpoint",
    ),
    (
        re.compile(r"^(?=.*^\s*import nemo_run\b).*\brun\.Script\(", re.MULTILINE | re.DOTALL),
        "launcher of NeMo-Run",
        "give the program that it starts, with what it is told as key=value",
    ),
    (re.compile(r"^\s*(from|import) (nemo|nemo_run)\b", re.MULTILINE), "NeMo 2 program that runs no recipe", _INSTEAD),
    (
        re.compile(r"\bHfArgumentParser\(|\bTrlParser\("),
        "program of Hugging Face's Trainer that is told all by its command",
        "give the script that starts it, or the YAML of its arguments",
    ),
    (re.compile(r"^[\w.\[\]']*klass: '?axlearn\.", re.MULTILINE), "AXLearn configuration", _INSTEAD),
)

LAUNCHERS: tuple[Named, ...] = (
    (re.compile(r"-m\s+EasyLM\.models\."), "script of EasyLM", _INSTEAD),
    (
        re.compile(r"\bverl\.trainer\.(?!fsdp_sft_trainer\b)\w+|\bopenrlhf\.cli\.train_\w+"),
        "script of verl or OpenRLHF",
        _INSTEAD,
    ),
    (
        re.compile(r"\bllamafactory-cli +train\b"),
        "script of LLaMA-Factory",
        "give the YAML that it trains as --config, and its settings as key=value",
    ),
    (re.compile(r"\bscripts/train/(?:[\w-]+/)?OLMo[\w-]*\.py\b"), "script of OLMo-core", _INSTEAD),
    (
        re.compile(r"\brun_recipe\.py\b"),
        "script of a Megatron-Bridge recipe",
        "give run_config.yaml, which a run of it writes into its checkpoint",
    ),
    (
        re.compile(r"\baxolotl(?:\.cli\.train| train)\b"),
        "script of Axolotl",
        "give the YAML that it trains as --config",
    ),
)
"""By the command that starts a run."""

INCLUDING: Named = (
    re.compile(r"^\w+:\s*!include\b(?=.*^trainer:)|^trainer:(?=.*^\w+:\s*!include\b)", re.MULTILINE | re.DOTALL),
    "Levanter configuration with files that it includes",
    _INSTEAD,
)
"""Levanter's own tag is no YAML that is read (``data: !include data/openwebtext.yaml``)."""


def refuse_mapping(values: Mapping[str, Any], path: Path) -> None:
    """Refuse a mapping of a stack that is not read.

    Raises:
        ConfigError: it is one; the hint says what to give.
    """
    for stack in _MAPPINGS:
        if stack.fits(values):
            _refuse(stack.name, stack.instead, path)


def refuse_text(known: Iterable[Named], text: str, path: Path) -> None:
    """Refuse a script or a program of a stack that is not read; raises like :func:`refuse_mapping`."""
    for pattern, name, instead in known:
        if pattern.search(text):
            _refuse(name, instead, path)


def _refuse(name: str, instead: str, path: Path) -> NoReturn:
    article = "an" if name[0] in "AEIOU" else "a"
    raise ConfigError(f"is {article} {plain(name, 80)}, which is not read", where=str(path), hint=instead)
