"""Compiled programs: what the TPU compiler says a training step needs, one JSON line for each configuration."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.calibration.dataset.rows import read_rows
from asap.core.errors import ConfigError
from asap.hardware import Slice, resolve_hardware
from asap.models import Architecture, Workload, find_architecture
from asap.plans import Plan


@dataclass(frozen=True)
class CompiledProgram:
    """A configuration of the reference step, and bytes of one device: at the peak, and of its arguments."""

    model_name: str
    architecture: Architecture
    hardware: Slice
    plan: Plan
    workload: Workload
    needed_bytes: float
    argument_bytes: float
    compiler: str

    @property
    def kept_out(self) -> bool:
        """Whether its model is kept out of every fit and every choice: one in four, by the SHA-256 of the name."""
        return hashlib.sha256(self.model_name.encode()).digest()[0] % 4 == 0


def read_compiled(path: Path) -> list[CompiledProgram]:
    """The programs of a table that the compiler gave an answer for.

    Raises:
        ConfigError: the file cannot be read, or a row lacks what it needs.
    """
    return [_program(row, path) for row in read_rows(path) if row.get("needed_bytes")]


def _program(row: dict[str, Any], path: Path) -> CompiledProgram:
    try:
        architecture = find_architecture(row["model"])
        if architecture is None:
            raise ConfigError(f"unknown model {row['model']}", where=str(path))
        workload = Workload(
            global_batch=row["global_batch"], sequence_length=row["sequence_length"], framework="MaxText"
        )
        return CompiledProgram(
            row["model"], architecture, resolve_hardware(row["hardware"]).slice, Plan.parse(row["plan"]), workload,
            float(row["needed_bytes"]), float(row["argument_bytes"]), f"libtpu {row['versions']['libtpu']}",
        )  # fmt: skip
    except KeyError as error:
        raise ConfigError(f"a row lacks {error}", where=str(path)) from error
