"""Megatron-LM's verdict on lines: its arguments are parsed and validated, and made its core's configuration.

Runs under an interpreter with torch, which need not see a GPU: it is told of an H100. Lines come as JSON on standard
input, verdicts go to standard output.
"""

import os
import sys
import typing
import warnings
from types import SimpleNamespace
from typing import Any

from asked import answer

sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
typing.__dict__.setdefault("override", lambda function: function)  # of Python 3.12
_DATA = ("--mock-data", "--lr", "1e-4", "--train-iters", "10", "--tokenizer-type", "NullTokenizer")
_H100 = SimpleNamespace(major=9, minor=0, total_memory=80 << 30, name="NVIDIA H100", multi_processor_count=132)


def pretend_gpu() -> None:
    """What Megatron-LM asks of the GPU when it is imported and checks arguments."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *_: (_H100.major, _H100.minor)
    torch.cuda.get_device_name = lambda *_: _H100.name
    torch.cuda.get_device_properties = lambda *_: _H100


def verdict(line: dict[str, Any]) -> str | None:
    """Why Megatron-LM refuses a line; ``None`` if it takes it."""
    from megatron.training import argument_utils, arguments  # pyright: ignore[reportMissingImports]

    shards = {"--use-megatron-fsdp", "--use-torch-fsdp2"} & {*line["words"]}
    connections = "8" if shards else "1"
    os.environ.update(RANK="0", WORLD_SIZE=str(line["devices"]), CUDA_DEVICE_MAX_CONNECTIONS=connections)
    sys.argv = ["pretrain_gpt.py", *line["words"], *_DATA]
    try:
        argument_utils.core_transformer_config_from_args(arguments.validate_args(arguments.parse_args()))
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    answer(verdict, pretend_gpu)
