"""Axolotl's verdict on lines: its schema reads the changed file, and Accelerate checks the sizes that come of it.

Runs under an interpreter with Axolotl's packages, without a GPU: it is told of H100s. Lines come as JSON on standard
input, verdicts go to standard output.
"""

import logging
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), f"{sys.argv[1]}/src"]
warnings.simplefilter("ignore")
import yaml  # noqa: E402
from asked import answer, differences, stand_in_for  # noqa: E402

_ABSENT = (
    "art", "bitsandbytes", "boto3", "colorama", "lm_eval", "numba", "ray", "ring_flash_attn", "torchvision", "trl",
    "xformers",
)  # fmt: skip
_H100 = {"bf16": True, "fp8": True, "compute_capability": "sm_90", "tf32": True}
_SIZES = "PARALLELISM_CONFIG"
_GPUS_OF_NODE = 8


def changed(file: str, line: str) -> dict[str, Any]:
    """A file with a line pasted over it; plugins are left out, which have packages of their own."""
    return _over(yaml.safe_load(Path(file).read_text(encoding="utf-8")), yaml.safe_load(line) or {}) | {"plugins": None}


def _over(values: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = {key: _over(values.get(key) or {}, value) for key, value in new.items() if isinstance(value, dict)}
    return values | new | merged


def verdict(line: dict[str, Any]) -> str | None:
    """Why Axolotl refuses a line, or what it makes of it instead; ``None`` if it takes it."""
    from axolotl.utils.config import validate_config  # pyright: ignore[reportMissingImports]
    from axolotl.utils.dict import DictDefault  # pyright: ignore[reportMissingImports]

    devices = line["devices"]
    machine = {"n_gpu": min(devices, _GPUS_OF_NODE), "n_node": max(devices // _GPUS_OF_NODE, 1)}
    try:
        values = DictDefault(changed(line["words"][0], line["line"]))
        config = validate_config(values, _H100 | machine, {"torch_version": "2.11.0"})
        made = meaning_of(config, devices)
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())
    return differences(line["meant"], made) if line["line"] else None


def meaning_of(config: Any, devices: int) -> dict[str, int | str]:
    """What a line made Axolotl do, in ASAP's words; raises where Accelerate refuses the sizes."""
    from accelerate import DistributedType  # pyright: ignore[reportMissingImports]
    from accelerate.parallelism_config import ParallelismConfig  # pyright: ignore[reportMissingImports]
    from axolotl.utils.trainer import setup_parallelism_envs  # pyright: ignore[reportMissingImports]

    for name in [name for name in os.environ if _SIZES in name]:
        del os.environ[name]
    setup_parallelism_envs(config)
    sharded = bool(config.fsdp or config.fsdp_config)
    kind = "FSDP" if sharded else "DEEPSPEED" if config.deepspeed else "MULTI_GPU"
    sizes = ParallelismConfig()
    if os.environ.get(f"ACCELERATE_USE_{_SIZES}"):
        sizes._validate_accelerator(
            SimpleNamespace(
                num_processes=devices,
                multi_device=kind == "MULTI_GPU",
                is_fsdp2=sharded and str(config.fsdp_version) == "2",
                is_main_process=False,
                distributed_type=DistributedType[kind],
            )
        )
    found: dict[str, int | str] = {
        "model": sizes.tp_size,
        "seq": sizes.cp_size,
        "sequences": config.micro_batch_size,
        "microbatches": config.gradient_accumulation_steps,
    }
    return found | ({"replica": sizes.dp_replicate_size} if sharded else {})


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    answer(verdict, lambda: stand_in_for(_ABSENT))
