"""torchtitan's verdict on lines: its trainer builds the model on no device, and lays it out over so many.

Runs under an interpreter with torchtitan's packages, which needs no GPU. With a folder as second argument it writes
each configuration there, as a run does; else lines come as JSON on standard input, and verdicts go to standard output.
Only ``fully_shard`` is left out: it needs the PyTorch of the day.
"""

import importlib
import json
import logging
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

sys.path[:0] = [str(Path(__file__).parent), sys.argv[1]]
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from asked import answer, differences  # noqa: E402

_REMAT = {"FullAC": "full", "SelectiveAC": "minimal", "NoneType": "none"}


class BuiltError(Exception):
    """The model is laid out; next it would take memory."""


def pretend_gpu() -> None:
    """Meshes without devices, and a stop before weights are made."""
    import torch.nn.attention  # pyright: ignore[reportMissingImports]
    from torchtitan.tools import utils  # pyright: ignore[reportMissingImports]

    utils.device_type, utils.device_module = "cpu", torch.cpu
    utils.get_local_device = lambda: torch.device("cpu")
    utils.has_cuda_capability = lambda *_: True
    torch.nn.Module.to_empty = MagicMock(side_effect=BuiltError)
    torch.nn.attention.activate_flash_attention_impl = MagicMock()
    from torchtitan.components import metrics  # pyright: ignore[reportMissingImports]
    from torchtitan.distributed import fsdp  # pyright: ignore[reportMissingImports]

    for direction in ("forward", "backward"):
        setattr(torch.nn.Module, f"set_modules_to_{direction}_prefetch", MagicMock())
    metrics.build_device_memory_monitor = MagicMock()
    fsdp.fully_shard, fsdp.FSDPModule = MagicMock(), ()


def verdict(line: dict[str, Any]) -> str | None:
    """Why torchtitan refuses a line, or what it makes of it instead; ``None`` if it takes it."""
    import torch  # pyright: ignore[reportMissingImports]
    from torchtitan.trainer import Trainer  # pyright: ignore[reportMissingImports]

    devices = str(line["devices"])
    os.environ.update(NGPU=devices, WORLD_SIZE=devices, RANK="0", LOCAL_RANK="0")
    module, name = line["words"]
    trainer = Trainer.__new__(Trainer)
    try:
        registry = importlib.import_module(f"torchtitan.models.{module}.config_registry")
        config = getattr(registry, name)()
        exec(
            line["line"],
            {**vars(importlib.import_module("torchtitan.distributed.activation_checkpoint")), "config": config},
        )
        config.comm.mode = "fake_backend"
        config.__post_init__()
        trainer.__init__(config)
    except BuiltError:
        return differences(line["meant"], meaning_of(trainer)) if line["line"] else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    return "built nothing"


def meaning_of(trainer: Any) -> dict[str, int | str]:
    """What a line made torchtitan do, in ASAP's words."""
    dims, config = trainer.parallel_dims, trainer.config
    staged = dims.pp > 1
    return {
        "replica": dims.dp_replicate,
        "data": dims.dp_shard,
        "seq": dims.cp,
        "experts_over": dims.ep,
        "model": dims.tp,
        "stage": dims.pp,
        "pipeline_repeats": len(trainer.model_parts) if staged else 1,
        "microbatches": trainer.gradient_accumulation_steps * trainer.num_pp_microbatches,
        "sequences": config.training.num_tokens_per_microbatch_per_dp_rank // config.training.max_context_length,
        "remat": _REMAT.get(type(config.activation_checkpoint).__qualname__.partition(".")[0], "?"),
    }


def write(folder: Path) -> None:
    """Write the JSON of each configuration, by its module and name."""
    for registry in sorted(Path(sys.argv[1]).glob("torchtitan/models/*/config_registry.py")):
        module = registry.parent.name
        for name in re.findall(r"^def ([a-z]\w*)\(\) -> Trainer.Config:", registry.read_text(encoding="utf-8"), re.M):
            made = getattr(importlib.import_module(f"torchtitan.models.{module}.config_registry"), name)()
            (folder / f"{module}@{name}.json").write_text(json.dumps(made.to_dict()), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        write(Path(sys.argv[2]))
    else:
        answer(verdict, pretend_gpu)
