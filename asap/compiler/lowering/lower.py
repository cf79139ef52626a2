"""The training step of a request, lowered: the reference step, MaxText's, or the user's own."""

import importlib
import os
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asap
from asap.compiler.lowering.maxtext_step import lower_maxtext_step
from asap.compiler.lowering.mesh import slice_name
from asap.compiler.programs.request import CompileRequest
from asap.core.text import plain

if TYPE_CHECKING:
    from jax.sharding import Mesh

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
    from asap.compiler.algorithms.distributed import step_on
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
