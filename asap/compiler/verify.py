"""Plans of an experiment, compiled by the real TPU compiler and judged."""

import hashlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from asap.compiler.choice import REFERENCE, Choice
from asap.compiler.compile import compile_all
from asap.compiler.flags import compiler_flags
from asap.compiler.judge import judge
from asap.compiler.request import Outcome, Request, make_request
from asap.compiler.train_step import check_reference
from asap.compiler.verdict import Verification
from asap.core.errors import BadInputError, InsufficientEvidenceError, PlanError, UsageError
from asap.core.text import REDACTED
from asap.experiments import Experiment
from asap.hardware import Slice, resolve_hardware
from asap.models import Architecture
from asap.plans import Plan
from asap.plans.maxtext import to_overrides
from asap.prediction.prediction import Prediction


def verify(
    experiment: Experiment,
    plans: Sequence[Plan],
    choice: Choice = REFERENCE,
    progress: Callable[[str], None] = lambda stage: None,
) -> list[Verification]:
    """Compile the training step of an experiment under each plan.

    A plan that the step cannot express gets a verdict that says so.

    Args:
        experiment: what it runs on and, for the reference step, its model and workload.
        plans: for the experiment's slice.
        choice: whose training step, and how it is compiled.
        progress: told of each stage.

    Raises:
        InsufficientEvidenceError: model, hardware or workload are not known well enough.
        BadInputError: the hardware has no such compiler, or a plan does not fit it.
        ConfigError: the compiler is missing.
    """
    hardware = _hardware(experiment)
    if choice.maxtext and hardware.topology is None:
        raise BadInputError("MaxText's step is compiled for TPUs alone", where=hardware.chip.title)
    if choice.is_reference and experiment.model is None:
        raise InsufficientEvidenceError(
            "the model is not known", where=experiment.id, hint="give your own step with --train-step"
        )
    programs = [_program(experiment, hardware, plan, choice) for plan in plans]
    requests = [request for request, reason in programs if not reason]
    progress(f"compiling {len(requests)} program(s) for {hardware.chip.title} {hardware.shape}")
    compiled = iter(compile_all(requests, engine=choice.engine, limits=choice.limits, progress=progress))
    return [
        judge(
            request, Outcome(status="unwritten", message=reason) if reason else next(compiled), hardware,
            _expected(experiment, hardware, request.plan), experiment.id,
        )
        for request, reason in programs
    ]  # fmt: skip


def _program(experiment: Experiment, hardware: Slice, plan: Plan, choice: Choice) -> tuple[Request, str]:
    """What is asked of the compiler for a plan, and why it cannot be asked, if it cannot."""
    settings: dict[str, Any] = {}
    path, source = _their_source(choice.train_step) if choice.train_step else ((), "")
    reason = ""
    try:
        if choice.is_reference:
            check_reference(experiment.model or Architecture(), experiment.workload, plan)
        elif choice.maxtext:
            settings = maxtext_settings(experiment, plan)
    except PlanError as error:
        reason = error.message
    request = make_request(
        hardware, plan, experiment.model if choice.is_reference else None, experiment.workload,
        train_step=choice.train_step, maxtext=settings if choice.maxtext else None, path=path, step_source=source,
        flags=compiler_flags(hardware.chip.name, experiment.environment, plan), effort=choice.effort,
        python=choice.python,
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


def maxtext_settings(experiment: Experiment, plan: Plan) -> dict[str, Any]:
    """What MaxText is told to run an experiment under a plan: the settings on record, and the plan on top.

    Raises:
        InsufficientEvidenceError: the experiment was not made from MaxText's settings.
        PlanError: MaxText cannot express the plan.
    """
    left_out = ("base_config",)
    said = {key: v for key, v in experiment.hyperparameters.items() if v != REDACTED and key not in left_out}
    if experiment.workload.framework != "MaxText" or not said:
        hint = "asap experiments add ID --config run.yml"
        raise InsufficientEvidenceError("no settings of MaxText are on record", where=experiment.id, hint=hint)
    batch, layers = experiment.workload.global_batch, experiment.model.layers if experiment.model else None
    topology = experiment.hardware.topology
    overrides = to_overrides(plan, said, global_batch=batch, layers=layers, topology=topology)
    return {**said, **{key: yaml.safe_load(value) for key, value in overrides.items()}}


def _expected(experiment: Experiment, hardware: Slice, plan: Plan) -> Prediction | None:
    from asap.prediction import predict

    try:
        return predict(plan, experiment.model, experiment.workload, hardware)[0]
    except (BadInputError, InsufficientEvidenceError):
        return None


def _their_source(train_step: str) -> tuple[tuple[str, ...], str]:
    """Where the user's package lies, and a fingerprint of its sources."""
    module, colon, name = train_step.partition(":")
    if not (module and colon and name):
        raise UsageError("is not package.module:function", where=f"--train-step {train_step}")
    here = Path.cwd()
    root = here / module.partition(".")[0]
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root.with_suffix(".py")]
    known = [file for file in files if file.is_file()]
    if not known:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            spec = None
        if spec is None or spec.origin is None:
            raise UsageError("there is no such module", where=f"--train-step {train_step}", hint=f"looked in {here}")
        known = [Path(spec.origin)]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in known)).hexdigest()
    return (str(here), *os.environ.get("PYTHONPATH", "").split(os.pathsep)), digest
