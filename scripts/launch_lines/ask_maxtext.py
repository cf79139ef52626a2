"""MaxText's verdict on lines: its configuration is read, and its mesh made of the devices of a described slice.

Runs under an interpreter with MaxText's packages; lines come as JSON on standard input, verdicts go to standard output.
"""

import logging
import os
import shlex
import sys
from functools import cache
from pathlib import Path
from typing import Any

from asked import answer

os.environ["JAX_PLATFORMS"] = "cpu"
SOURCE = Path(sys.argv[1]) / "src"
sys.path.insert(0, str(SOURCE))
logging.disable(logging.CRITICAL)
_ELSEWHERE = (
    "dataset_type", "dataset_path", "tokenizer_path", "compile_topology", "hf_path", "base_output_directory",
    "run_name", "load_parameters_path", "enable_checkpointing", "grain_train_files", "profiler", "hardware",
)  # fmt: skip
_HERE = (
    "run_name=x",
    "hardware=tpu",
    "dataset_type=synthetic",
    "base_output_directory=x",
    "enable_checkpointing=False",
)


@cache
def devices_of(topology: str, slices: int) -> Any:
    from jax.experimental.topologies import get_topology_desc
    from maxtext.utils import accelerator_to_spec_map  # pyright: ignore[reportMissingImports]

    known = accelerator_to_spec_map.get_system_characteristics(topology)
    return get_topology_desc(
        platform=known.platform, topology_name=known.topology_name, chip_config_name=known.chip_config_name,
        chips_per_host_bounds=known.chips_per_host_bounds, num_slices=slices, wrap=known.wrap,
    ).devices  # fmt: skip


def verdict(line: dict[str, Any]) -> str | None:
    """Why MaxText refuses a line; ``None`` if it takes it."""
    from maxtext.configs import pyconfig  # pyright: ignore[reportMissingImports]
    from maxtext.utils import maxtext_utils  # pyright: ignore[reportMissingImports]

    name, slices = line["hardware"], line["slices"]
    topology = f"tpu7x-{line['devices'] // slices}" if name.startswith("tpu7x") else name
    words = [
        word for word in line["words"] if word.partition("=")[0] not in _ELSEWHERE and word != "model_name=default"
    ]
    described = f"compile_topology={topology}", f"compile_topology_num_slices={slices}"
    base = str(SOURCE / "maxtext" / "configs" / "base.yml")
    try:
        config = pyconfig.initialize([None, base, *words, *_HERE, *described, *shlex.split(line["line"])])
        maxtext_utils.create_device_mesh(config, devices_of(topology, slices))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    answer(verdict)
