"""Megatron-Bridge's verdict on lines: laid over a recipe by its own parser, and the configuration validated.

Runs under an interpreter with Megatron-Bridge's packages, without a GPU: it is told of an H100. With a folder as third
argument it writes each recipe there, as a run does; else lines come as JSON on standard input, and verdicts go to
standard output.
"""

import contextlib
import importlib
import io
import logging
import math
import os
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), f"{sys.argv[1]}/src", sys.argv[2]]
warnings.simplefilter("ignore")
from ask_megatron import pretend_gpu  # noqa: E402
from asked import answer, differences, stand_in_for  # noqa: E402

_ABSENT = ("transformer_engine", "modelopt", "megatron.energon", "megatron.bridge.diffusion")
_LLAMA3 = {"vocab_size": 128256, "num_key_value_heads": 8, "architectures": ["LlamaForCausalLM"]}
_SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama-3-8B": ("LlamaConfig", _LLAMA3 | {"intermediate_size": 14336}),
    "Llama-3-70B": (
        "LlamaConfig",
        _LLAMA3 | {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64},
    ),
    "Llama-3.1-405B": (
        "LlamaConfig",
        _LLAMA3
        | {"hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128},
    ),
    "Qwen3-30B-A3B": (
        "Qwen3MoeConfig",
        {"architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 48, "head_dim": 128},
    ),
    "Qwen3-235B-A22B": (
        "Qwen3MoeConfig",
        {
            "architectures": ["Qwen3MoeForCausalLM"],
            "hidden_size": 4096,
            "num_hidden_layers": 94,
            "num_attention_heads": 64,
            "head_dim": 128,
            "moe_intermediate_size": 1536,
            "intermediate_size": 12288,
        },
    ),
    "DeepSeek-V3": ("DeepseekV3Config", {"architectures": ["DeepseekV3ForCausalLM"]}),
    "gpt-oss-120b": ("GptOssConfig", {"architectures": ["GptOssForCausalLM"]}),
}
"""Configurations that a recipe asks Hugging Face for, by the end of their names."""


class FusedAdam:
    """The arguments of Transformer Engine's, which are asked for."""

    def __init__(
        self, master_weight_dtype: Any, exp_avg_dtype: Any, exp_avg_sq_dtype: Any, use_decoupled_grad: Any,
        store_param_remainders: Any,
    ) -> None: ...  # fmt: skip


def shapes_of(name: str, **_: Any) -> Any:
    import transformers  # pyright: ignore[reportMissingImports]

    kind, values = next(shape for end, shape in _SHAPES.items() if str(name).endswith(end))
    return getattr(transformers, kind)(**values)


def recipe(words: list[str]) -> Any:
    module, name = words
    return getattr(importlib.import_module(f"megatron.bridge.perf_recipes.{module}"), name)()


def verdict(line: dict[str, Any]) -> str | None:
    """Why Megatron-Bridge refuses a line, or what it makes of it instead; ``None`` if it takes it."""
    from megatron.bridge.training.config import runtime_config_update  # pyright: ignore[reportMissingImports]
    from megatron.bridge.training.utils.omegaconf_utils import (  # pyright: ignore[reportMissingImports]
        process_config_with_overrides,
    )

    os.environ.update(RANK="0", WORLD_SIZE=str(line["devices"]))
    config = recipe(line["words"])
    config.train.global_batch_size = line["meant"].get("batch", config.train.global_batch_size)
    try:
        config = process_config_with_overrides(config, cli_overrides=line["line"].split())
        runtime_config_update(config)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return differences(line["meant"], meaning_of(config, line["devices"]))


def meaning_of(config: Any, devices: int) -> dict[str, int | str]:
    """What a line made Megatron-Bridge do, in ASAP's words."""
    model, batch, each = config.model, config.train.global_batch_size, config.train.micro_batch_size
    sizes = {
        "model": model.tensor_model_parallel_size,
        "stage": model.pipeline_model_parallel_size,
        "seq": model.context_parallel_size,
    }
    groups = devices // math.prod(sizes.values())
    repeats = model.virtual_pipeline_model_parallel_size or 1
    sharded = config.ddp.use_megatron_fsdp and config.ddp.data_parallel_sharding_strategy == "optim_grads_params"
    return {
        **sizes,
        "sharded": int(sharded),
        "experts_over": model.expert_model_parallel_size,
        "pipeline_repeats": repeats if sizes["stage"] > 1 else 1,
        "microbatches": batch // groups // each,
        "sequences": each,
        "remat": recomputed(model.recompute_granularity, {*(model.recompute_modules or ["core_attn"])}),
    }


def recomputed(granularity: str | None, modules: set[str]) -> str:
    if granularity != "selective":
        return granularity or "none"
    return "save_dot_except_mlp" if modules & {"mlp", "moe"} else "selective" if "core_attn" in modules else "none"


def write(folder: Path) -> None:
    """Each recipe of pretraining whose model is known, as YAML."""
    package = Path(sys.argv[1], "src", "megatron", "bridge", "perf_recipes")
    for source in sorted(package.glob("*/h100/*.py")):
        module = ".".join(source.relative_to(package).with_suffix("").parts)
        found = importlib.import_module(f"megatron.bridge.perf_recipes.{module}")
        for name in sorted(
            name for name in vars(found) if "_pretrain_" in name and name.endswith("_config") and "gpu" in name
        ):
            if getattr(found, name).__module__ != found.__name__:
                continue
            try:
                config = getattr(found, name)()
            except (StopIteration, AttributeError):  # a model that is not known, or none of text
                continue
            config.to_yaml(str(folder / f"{module}@{name}.yaml"))


def pretend_packages() -> None:
    """Stand-ins for what needs a GPU, and shapes of models that would be downloaded."""
    stand_in_for(_ABSENT)
    from megatron.bridge.models.conversion import auto_bridge  # pyright: ignore[reportMissingImports]

    optimizers = importlib.import_module("transformer_engine.pytorch.optimizers")
    vars(optimizers)["FusedAdam"] = FusedAdam
    pretend_gpu()
    auto_bridge.safe_load_config_with_retry = shapes_of


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    if len(sys.argv) > 3:
        with contextlib.redirect_stdout(io.StringIO()):
            pretend_packages()
            write(Path(sys.argv[3]))
    else:
        answer(verdict, pretend_packages)
