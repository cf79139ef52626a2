"""Plans of an experiment, compiled by the real TPU compiler and compared with their predictions."""

from collections.abc import Callable, Sequence
from typing import Any

from asap.compiler.assess import assess
from asap.compiler.programs.options import REFERENCE_STEP, CompileOptions, compiler_flags, find_source, maxtext_settings
from asap.compiler.programs.request import CompileOutcome, CompileRequest, make_request
from asap.compiler.reference.expressible import check_expressible, mapping_target
from asap.compiler.reference.layout import check_mesh_only, check_program_expressible, lines_text
from asap.compiler.toolchain.compile import compile_all
from asap.compiler.verification import Verification
from asap.core.errors import BadInputError, InsufficientEvidenceError, PlanError
from asap.core.units import counted
from asap.experiments import Experiment
from asap.hardware import Slice, resolve_hardware
from asap.models import Architecture
from asap.plans import Plan
from asap.plans.degrees import workload_under
from asap.prediction.prediction import Prediction


def verify(
    experiment: Experiment,
    plans: Sequence[Plan],
    options: CompileOptions = REFERENCE_STEP,
    progress: Callable[[str], None] = lambda stage: None,
) -> list[Verification]:
    """Compile the training step of an experiment under each plan.

    A plan that the step cannot express gets a verdict that says so; nothing is compiled for it.

    Args:
        experiment: what it runs on and, for the reference step, its model and workload.
        plans: for the experiment's slice.
        options: which training step, and how it is compiled.
        progress: called with each stage.

    Raises:
        InsufficientEvidenceError: model, hardware or workload are not known well enough.
        BadInputError: the hardware has no such compiler, or a plan does not fit it.
        ConfigError: the compiler is missing.
    """
    hardware = _hardware(experiment)
    if options.maxtext and hardware.topology is None:
        raise BadInputError("MaxText's step is compiled for TPUs only", where=hardware.chip.title)
    if options.flags and hardware.topology is None:
        raise BadInputError("--flags are those of the TPU compiler", where=hardware.chip.title)
    if options.is_reference and (experiment.model is None or experiment.workload.adapter_rank):
        reason = "the reference step trains no adapters" if experiment.model else "the model is not known"
        raise InsufficientEvidenceError(reason, where=experiment.id, hint="give your own step with --train-step")
    programs = [_program(experiment, hardware, plan, options) for plan in plans]
    requests = [request for request, reason in programs if not reason]
    progress(f"compiling {counted(len(requests), 'program')} for {hardware.chip.title} {hardware.shape}")
    compiled = iter(compile_all(requests, engine=options.engine, limits=options.limits, progress=progress))
    return [
        assess(
            request, CompileOutcome(status="not_expressible", message=reason) if reason else next(compiled), hardware,
            _expected(experiment, hardware, request.plan, options), experiment.id,
        )
        for request, reason in programs
    ]  # fmt: skip


def _program(
    experiment: Experiment, hardware: Slice, plan: Plan, options: CompileOptions
) -> tuple[CompileRequest, str]:
    """The request for a plan, and why the step cannot express the plan; empty if it can."""
    settings: dict[str, Any] = {}
    path, source = find_source(options.train_step) if options.train_step else ((), "")
    reason = ""
    try:
        if options.is_reference:
            workload = workload_under(plan, experiment.workload)
            check_expressible(experiment.model or Architecture(), workload, plan)
            if options.mapping is not None:
                check_program_expressible(options.mapping, workload, hardware.slices, hardware.chip.devices)
        elif options.maxtext:
            settings = maxtext_settings(experiment, plan)
        elif options.mapping is not None:
            check_mesh_only(options.mapping, hardware.slices, hardware.chip.devices)
    except PlanError as error:
        reason = error.message
    request = make_request(
        hardware, plan, experiment.model if options.is_reference else None, experiment.workload,
        train_step=options.train_step, mapping=lines_text(options.mapping),
        maxtext=settings if options.maxtext else None, path=path, step_source=source,
        flags=(*compiler_flags(hardware.chip.name, experiment.environment, plan), *options.flags),
        effort=options.effort, python=options.python,
    )  # fmt: skip
    return request, reason


def _hardware(experiment: Experiment) -> Slice:
    reference = experiment.hardware
    name = reference.chip or reference.name
    if not name:
        raise InsufficientEvidenceError(
            "the hardware is not known", where=experiment.id, hint='give it with --hardware, e.g. "v5e-256"'
        )
    return resolve_hardware(name, reference.topology, reference.slices, reference.devices).slice


def _expected(experiment: Experiment, hardware: Slice, plan: Plan, options: CompileOptions) -> Prediction | None:
    from asap.prediction.from_architecture import predict
    from asap.prediction.predict_program import predict_program

    model, workload = experiment.model, experiment.workload
    try:
        if options.mapping is not None and options.is_reference and model is not None:
            return predict_program(options.mapping, mapping_target(model, workload), model, workload, hardware)
        return predict(plan, model, workload, hardware)[0]
    except (BadInputError, InsufficientEvidenceError):
        return None
