"""MaxText's own training step, lowered ahead of time by MaxText itself.

Its ``train_compile`` runs up to the call of ``Lowered.compile``, where the lowered step is intercepted. So the program
is exactly that of the installed MaxText.
"""

import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from asap.stacks.maxtext.sharding_rules import NAMES

PACKAGE_LAYOUTS: Mapping[str, tuple[str, str]] = {
    "maxtext": ("trainers.pre_train.train_compile", "utils.accelerator_to_spec_map"),
    "MaxText": ("train_compile", "accelerator_to_spec_map"),
}
"""Package → its modules for ahead-of-time compilation and for names of slices; newest releases first."""

AXES: Mapping[str, str] = {name: axis for axis, names in NAMES.items() for name in names} | {"stage": "stage"}
"""MaxText's names of the mesh axes → ours; the others keep theirs."""

_NO_OUTPUT_FILES: Mapping[str, Any] = {
    "run_name": "asap",
    "compiled_trainstep_file": "",
    "dump_hlo": False,
    "save_config_to_gcs": False,
}
_OVERRIDE_KEY = "override_model_config"
"""With it, command-line settings win over those that come with ``model_name``."""


class _CompileIntercepted(BaseException):
    """Carries the lowered step out of ``train_compile``. Not an ``Exception``, which MaxText might catch."""

    def __init__(self, lowered: Any, options: Mapping[str, Any]):
        self.lowered, self.options = lowered, options


def lower_maxtext_step(
    settings: Mapping[str, Any], slice_name: str, slices: int, devices: int, folder: Path
) -> tuple[Any, dict[str, Any]]:
    """The lowered step, and the options that MaxText would compile it with.

    Args:
        settings: MaxText's keys and values, on top of its base.yml.
        slice_name: name of the slice in libtpu: ``v5e:16x16``.
        slices: slices of the job.
        devices: devices of one slice.
        folder: for the configuration file.

    Raises:
        ModuleNotFoundError: MaxText is not installed.
    """
    package, train_compile, table = _import_maxtext()
    target = _target(table, slice_name, slices, devices)
    merged = {**settings, **_NO_OUTPUT_FILES, **target, "base_output_directory": str(folder)}
    as_arguments = str(merged.get(_OVERRIDE_KEY)).lower() == "true"
    base = Path(next(iter(package.__path__))) / "configs" / "base.yml"
    configuration = folder / "maxtext.yml"
    document = {"base_config": str(base), **({} if as_arguments else merged)}
    configuration.write_text(yaml.safe_dump(document), encoding="utf-8")
    arguments = [f"{key}={json.dumps(value)}" for key, value in merged.items()] if as_arguments else []
    with _intercept_compile():
        try:
            train_compile.main([train_compile.__name__, str(configuration), *arguments])
        except _CompileIntercepted as intercepted:
            return intercepted.lowered, dict(intercepted.options)
    raise RuntimeError(f"{train_compile.__name__} never called Lowered.compile")


def mesh_of(compiled: Any) -> tuple[Any, tuple[tuple[str, int], ...]]:
    """The mesh of a compiled program, and our names and the lengths of its axes."""
    import jax

    leaves = jax.tree.leaves(compiled.input_shardings, is_leaf=lambda leaf: hasattr(leaf, "mesh"))
    mesh = next(leaf.mesh for leaf in leaves if hasattr(leaf, "mesh"))
    return mesh, tuple((AXES.get(name, name), int(mesh.shape[name])) for name in mesh.axis_names)


def _import_maxtext() -> tuple[ModuleType, ModuleType, ModuleType]:
    for name, (train_compile, table) in PACKAGE_LAYOUTS.items():
        try:
            package = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            continue
        return package, importlib.import_module(f"{name}.{train_compile}"), importlib.import_module(f"{name}.{table}")
    raise ModuleNotFoundError("MaxText is not installed")


def _target(table: ModuleType, slice_name: str, slices: int, devices: int) -> dict[str, Any]:
    """MaxText's settings for the slice: by its own name for it, or by libtpu's where it has none."""
    known = table.UserFacingNameToSystemCharacteristics
    name = next((name for name, found in known.items() if found.topology_name == slice_name), None)
    target = {"compile_topology": name or slice_name, "compile_topology_num_slices": slices}
    return target if name else {**target, "internal_compile": True, "internal_compile_num_devices": devices}


@contextmanager
def _intercept_compile() -> Iterator[None]:
    from jax.stages import Lowered

    compile = Lowered.compile

    def intercept(self: Any, compiler_options: Mapping[str, Any] | None = None, **_: Any) -> Any:
        raise _CompileIntercepted(self, compiler_options or {})

    Lowered.compile = intercept
    try:
        yield
    finally:
        Lowered.compile = compile
