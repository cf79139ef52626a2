"""The training step of a request, lowered: the reference step, MaxText's, or the user's own."""

import importlib
import json
import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import yaml

import asap
from asap.compiler.lowering.mesh import slice_name
from asap.compiler.programs.request import CompileRequest
from asap.core.text import plain
from asap.plans.axes import MESH_NAMES

if TYPE_CHECKING:
    from jax.sharding import Mesh


PACKAGE_LAYOUTS: Mapping[str, tuple[str, str]] = {
    "maxtext": ("trainers.pre_train.train_compile", "utils.accelerator_to_spec_map"),
    "MaxText": ("train_compile", "accelerator_to_spec_map"),
}
"""Package → its modules for ahead-of-time compilation and for names of slices; newest releases first."""

AXES: Mapping[str, str] = {name: axis for axis, names in MESH_NAMES.items() for name in names} | {"stage": "stage"}
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


_LONGEST_MESSAGE = 600


class StepError(Exception):
    """The training step raised while it was traced."""


def lower_step(request: CompileRequest, mesh: "Mesh | None", folder: Path) -> tuple[Any, dict[str, Any]]:
    """The lowered step and its compiler options; MaxText's, which builds its own mesh, where there is no mesh.

    Raises:
        StepError: the step raised.
    """
    return _lower_maxtext(request, folder) if mesh is None else (_lower(request, mesh), {})


def _lower(request: CompileRequest, mesh: "Mesh") -> Any:
    try:
        function, arguments = _step(request, mesh)
        return function.lower(*arguments)
    except StepError:
        raise
    except Exception as error:
        raise StepError(_user_error(error)) from error


def _lower_maxtext(request: CompileRequest, folder: Path) -> tuple[Any, dict[str, Any]]:
    try:
        return lower_maxtext_step(
            request.maxtext or {}, slice_name(request), request.slices, request.devices_per_slice, folder
        )
    except (Exception, SystemExit) as error:
        raise StepError(_user_error(error)) from error


def _step(request: CompileRequest, mesh: "Mesh") -> tuple[Any, tuple[Any, ...]]:
    if request.problem is not None:
        return _algorithm(request, mesh)
    if request.train_step is None:
        from asap.compiler.reference.expressible import program_lines
        from asap.compiler.reference.train_step import reference_step
        from asap.models import Architecture

        model = request.model or Architecture()
        lines = program_lines(request.mapping, model, request.workload)
        step = reference_step(model, request.workload, request.plan, mesh, lines=lines)
        return step.function, step.arguments
    module, _, name = request.train_step.partition(":")
    try:
        function, arguments = getattr(importlib.import_module(module), name)(mesh)
    except Exception as error:
        raise StepError(_user_error(error)) from error
    return function, tuple(arguments)


def _algorithm(request: CompileRequest, mesh: "Mesh") -> tuple[Any, tuple[Any, ...]]:
    from asap.compiler.algorithms.build import build
    from asap.compiler.algorithms.choices import choices_of
    from asap.compiler.algorithms.matmul import step_on
    from asap.mapping.language.parse import parse

    choices = choices_of(parse(request.mapping)[0], mesh.size)
    return step_on(build(choices, request.problem or {}), mesh, "bfloat16")


def _user_error(error: BaseException) -> str:
    """File and line of the user's code that raised, and what it raised."""
    package, libraries = os.path.dirname(asap.__file__) + os.sep, os.sep + "site-packages" + os.sep
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename[:1] != "<"]
    of_user = [f for f in frames if libraries not in f.filename and not f.filename.startswith(package)]
    place = f"{of_user[-1].filename}:{of_user[-1].lineno}: " if of_user else ""
    return plain(f"{place}{type(error).__name__}: {error}", _LONGEST_MESSAGE)
