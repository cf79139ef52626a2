"""Configurations of stacks that are known and not read, with what to give instead."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.experiments.unread_texts import INSTEAD, RENDERED, TOKENS, refusal
from asap.stacks.megatron.sections import dialect

_COSMOS = {"train_policy", "train_batch_per_replica", "optm_name", "optm_lr"}
_VEOMNI_MODEL = {"model_path", "config_path", "ops_implementation", "attn_implementation"}
_VEOMNI = {
    "accelerator",
    "data_parallel_mode",
    "ulysses_parallel_size",
    "rmpad",
    "rmpad_with_pos_ids",
    "bsz_warmup_ratio",
}
_OF_CHART = {"queue", "volumes", "network", "tasSettings", "dwsSettings", "gcsSidecarMemoryLimit"}
"""Beside a workload, keys of the charts of AI-Hypercomputer/gpu-recipes (``src/helm-charts``)."""
_POOLS = {"workerPoolSpecs", "worker_pool_specs"}
_AZURE = {"environment", "compute", "distribution", "resources", "code"}
_OF_JOB = "give the script or the configuration that its command starts, with --hardware"
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
        "file of values for a Helm chart",
        RENDERED,
        lambda v: (
            "kind" not in v
            and isinstance(v.get("workload"), dict)
            and ("gpus" in v["workload"] or len(_OF_CHART & v.keys()) >= 2)
        ),
    ),
    Unread(
        "torchtune recipe",
        INSTEAD,
        lambda v: any("torchtune" in str(_within(v, key, "_component_")) for key in ("model", "tokenizer")),
    ),
    Unread(
        "job of Vertex AI",
        _OF_JOB,
        lambda v: any(_POOLS & {*(below or ())} for below in (v, v.get("jobSpec"), v.get("job_spec"))),
    ),
    Unread(
        "job of Azure ML",
        _OF_JOB,
        lambda v: "command" in v and ("azuremlschemas" in str(v.get("$schema")) or len(_AZURE & v.keys()) >= 3),
    ),
    Unread("experiment of Beaker", _OF_JOB, lambda v: "tasks" in v and "beaker" in str(v["tasks"])),
    Unread(
        "configuration that is laid over a recipe of Megatron-Bridge",
        "give run_config.yaml, which a run of it writes into its checkpoint",
        lambda v: "megatron.bridge.recipes" in str(_within(v, "recipe", "_target_")),
    ),
    Unread("verl configuration of reinforcement learning", INSTEAD, lambda v: "actor_rollout_ref" in v),
    Unread("EasyR1 configuration", TOKENS, lambda v: {"algorithm", "worker"} <= v.keys()),
    Unread("NeMo-RL configuration", TOKENS, lambda v: {"policy", "cluster"} <= v.keys()),
    Unread("prime-rl configuration", TOKENS, lambda v: {"trainer", "orchestrator"} <= v.keys()),
    Unread("cosmos-rl configuration", TOKENS, lambda v: {"train", "policy"} <= v.keys() and _has(v, "train", _COSMOS)),
    Unread("VeOmni configuration", INSTEAD, lambda v: _has(v, "model", _VEOMNI_MODEL) and _has(v, "train", _VEOMNI)),
    Unread(
        "configuration of NeuronX Distributed Training",
        INSTEAD,
        lambda v: "distributed_strategy" in v and bool({"model_source", "trainer"} & v.keys()),
    ),
    Unread("dolomite-engine configuration", INSTEAD, lambda v: "model_args" in v and "tuning_args" in v),
    Unread(
        "OLMo configuration",
        INSTEAD,
        lambda v: _has(v, "model", {"d_model"}) and bool({"tokenizer", "optimizer"} & v.keys()) and v.keys() >= _MOSAIC,
    ),
    Unread(
        "configuration of LLM Foundry",
        INSTEAD,
        lambda v: "train_loader" in v and isinstance(v.get("model", v.get("models")), dict | list),
    ),
    Unread(
        "configuration of Cerebras's Model Zoo, for its own chips",
        INSTEAD,
        lambda v: (
            (_has(v, "trainer", {"init"}) and isinstance(_within(v, "trainer", "init", "backend"), dict))
            or {"train_input", "runconfig"} <= v.keys()
        ),
    ),
    Unread(
        "configuration of NeMo's launcher, which names the one of the model",
        "give that one, such as conf/training/gpt3/5b.yaml",
        lambda v: {"stages", "launcher_scripts_path"} <= v.keys(),
    ),
    Unread("AXLearn configuration", INSTEAD, lambda v: "axlearn." in f"{v.get('klass')} {v.get('model')}"),
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
    Unread("configuration of a program of Lightning", INSTEAD, lambda v: _has(v, "model", {"class_path"})),
    Unread(
        "recipe of SageMaker HyperPod",
        INSTEAD,
        lambda v: (
            "use_smp_model" in v
            or _has(v, "model", {"shard_degree", "hf_model_name_or_path"})
            or ("training_config" in v and bool({"instance_types", "display_name"} & v.keys()))
        ),
    ),
    Unread("NeMo 2 recipe", INSTEAD, lambda v: isinstance(_within(v, "trainer", "strategy"), dict)),
    Unread(
        "NeMo configuration of another model than a decoder",
        "give the configuration of a language model (model.num_layers, model.hidden_size …)",
        lambda v: (
            "trainer" in v and bool({"exp_manager", "model", "init_from_nemo_model"} & v.keys()) and dialect(v) is None
        ),
    ),
    Unread(
        "LLaMA-Factory configuration of version 1",
        f"give the DeepSpeed JSON of dist_config.config_file if there is one; else {INSTEAD}",
        lambda v: "micro_batch_size" in v and bool({"dist_config", "train_dataset"} & v.keys()),
    ),
)


def refuse_mapping(values: Mapping[str, Any], path: Path) -> None:
    """Refuse a mapping of a stack that is not read.

    Raises:
        ConfigError: it is one; the hint says what to give.
    """
    for stack in _MAPPINGS:
        if stack.fits(values):
            raise refusal(stack.name, stack.instead, path)
