"""Rows of published measurements: JSON objects, one a line, and the numbers in them."""

import gzip
import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.core.errors import BadInputError, ConfigError
from asap.core.numbers import bounded_from_text
from asap.core.text import plain
from asap.hardware import Slice, resolve_hardware
from asap.models import Architecture, Workload, find_architecture
from asap.plans import Plan

Row = Mapping[str, Any]


class UnusableRowError(BadInputError):
    """A row that cannot be used; the message is the reason."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All objects of a JSON-lines file, which may be compressed (``.gz``).

    Raises:
        ConfigError: the file cannot be read, or a line is not a JSON object; says which.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = data.decode("utf-8").split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", where=str(path)) from error
    return [_object(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def read_models(path: Path) -> dict[str, Row]:
    """Architecture rows by name and alias."""
    models: dict[str, Row] = {}
    for row in read_rows(path):
        aliases = row.get("alias")
        for name in (*(aliases if isinstance(aliases, list) else ()), row.get("model")):
            if isinstance(name, str):
                models[name] = row
    return models


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_int=bounded_from_text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is not JSON: {plain(error, 120)}", where=where) from error
    if not isinstance(value, dict):
        raise ConfigError("is not a JSON object", where=where)
    return value


def number(row: Row, *keys: str) -> float | None:
    """The first of the keys that holds a positive finite number."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            try:
                found = float(value)
            except ValueError:
                continue
            if math.isfinite(found) and found > 0:
                return found
    return None


def count(row: Row, *keys: str) -> int | None:
    """The same as a whole number; ``None`` if it is not whole."""
    value = number(row, *keys)
    return None if value is None or value != int(value) else int(value)


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
