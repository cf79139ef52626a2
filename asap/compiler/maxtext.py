"""MaxText's own training step, lowered ahead of time by MaxText itself.

Its ``train_compile`` runs up to where it would compile; there the lowered step is taken over. So the program is the one
that the installed MaxText writes, and nothing of it is repeated here.
"""

import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from asap.plans.maxtext_axes import NAMES

RELEASES: Mapping[str, tuple[str, str]] = {
    "maxtext": ("trainers.pre_train.train_compile", "utils.accelerator_to_spec_map"),
    "MaxText": ("train_compile", "accelerator_to_spec_map"),
}
"""Package → its ahead-of-time compilation and its table of slices, newest releases first."""

AXES: Mapping[str, str] = {name: axis for axis, names in NAMES.items() for name in names} | {"stage": "stage"}
"""MaxText's names of the mesh axes → ours; the others keep theirs."""

_WRITES_NOTHING: Mapping[str, Any] = {
    "run_name": "asap",
    "compiled_trainstep_file": "",
    "dump_hlo": False,
    "save_config_to_gcs": False,
}
_OWN_ARCHITECTURE = "override_model_config"
"""With it, what is said as an argument wins over the settings that come with ``model_name``."""


class _Reached(BaseException):
    """MaxText would compile now. Not an ``Exception``, which somebody may catch on the way."""

    def __init__(self, lowered: Any, options: Mapping[str, Any]):
        self.lowered, self.options = lowered, options


def lower(
    settings: Mapping[str, Any], slice_name: str, slices: int, devices: int, folder: Path
) -> tuple[Any, dict[str, Any]]:
    """The lowered step, and the options that MaxText would compile it with.

    Args:
        settings: MaxText's keys and values, on top of its base.yml.
        slice_name: what libtpu calls the slice: ``v5e:16x16``.
        slices: of the job.
        devices: of a slice.
        folder: for the configuration.

    Raises:
        ModuleNotFoundError: MaxText is not installed.
    """
    package, train_compile, table = _installed()
    target = _target(table, slice_name, slices, devices)
    said = {**settings, **_WRITES_NOTHING, **target, "base_output_directory": str(folder)}
    as_arguments = str(said.get(_OWN_ARCHITECTURE)).lower() == "true"
    base = Path(next(iter(package.__path__))) / "configs" / "base.yml"
    configuration = folder / "maxtext.yml"
    document = {"base_config": str(base), **({} if as_arguments else said)}
    configuration.write_text(yaml.safe_dump(document), encoding="utf-8")
    arguments = [f"{key}={json.dumps(value)}" for key, value in said.items()] if as_arguments else []
    with _compilation_taken_over():
        try:
            train_compile.main([train_compile.__name__, str(configuration), *arguments])
        except _Reached as reached:
            return reached.lowered, dict(reached.options)
    raise RuntimeError(f"{train_compile.__name__} compiled nothing")


def mesh_of(compiled: Any) -> tuple[Any, tuple[tuple[str, int], ...]]:
    """The mesh of a compiled program, and our names and the lengths of its axes."""
    import jax

    leaves = jax.tree.leaves(compiled.input_shardings, is_leaf=lambda leaf: hasattr(leaf, "mesh"))
    mesh = next(leaf.mesh for leaf in leaves if hasattr(leaf, "mesh"))
    return mesh, tuple((AXES.get(name, name), int(mesh.shape[name])) for name in mesh.axis_names)


def _installed() -> tuple[ModuleType, ModuleType, ModuleType]:
    for name, (train_compile, table) in RELEASES.items():
        try:
            package = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            continue
        return package, importlib.import_module(f"{name}.{train_compile}"), importlib.import_module(f"{name}.{table}")
    raise ModuleNotFoundError("MaxText is not installed")


def _target(table: ModuleType, slice_name: str, slices: int, devices: int) -> dict[str, Any]:
    """The slice under MaxText's name for it, or under libtpu's where MaxText has none."""
    known = table.UserFacingNameToSystemCharacteristics
    name = next((name for name, found in known.items() if found.topology_name == slice_name), None)
    target = {"compile_topology": name or slice_name, "compile_topology_num_slices": slices}
    return target if name else {**target, "internal_compile": True, "internal_compile_num_devices": devices}


@contextmanager
def _compilation_taken_over() -> Iterator[None]:
    from jax.stages import Lowered

    compile = Lowered.compile

    def take(self: Any, compiler_options: Mapping[str, Any] | None = None, **_: Any) -> Any:
        raise _Reached(self, compiler_options or {})

    Lowered.compile = take
    try:
        yield
    finally:
        Lowered.compile = compile
