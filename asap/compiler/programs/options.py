"""What is compiled and where: by default the reference step, by this Python on this machine."""

import hashlib
import importlib.util
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from asap.compiler.programs.request import Effort
from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.core.text import REDACTED, plain
from asap.experiments import Experiment
from asap.flags.environment import FLAG_VARIABLES, SETTING
from asap.flags.table import flag_group
from asap.plans import Plan
from asap.stacks.registry import OURS, spec
from asap.stacks.writing import to_settings

if TYPE_CHECKING:
    from asap.mapping.language.program import Program


LOCAL_ENGINE = "local"
"""Compiles on this machine."""

PYTHON_VARIABLE = "ASAP_PYTHON"
"""Environment variable: the interpreter for what a worklog asks to be compiled again."""


@dataclass(frozen=True)
class CompileLimits:
    """Limits on one compilation.

    Args:
        seconds: it may take.
        memory_bytes: of resident host memory.
        until: reading of ``time.monotonic()`` on this machine at which it ends in any case.
    """

    seconds: float = 900.0
    memory_bytes: float = 8 * 2**30
    until: float = math.inf

    @property
    def seconds_left(self) -> float:
        """For a compilation that starts now."""
        return max(min(self.seconds, self.until - time.monotonic()), 0.0)


DEFAULT_LIMITS = CompileLimits()


@dataclass(frozen=True)
class CompileOptions:
    """Whose training step is compiled, and how.

    Args:
        train_step: ``package.module:function``, called with a mesh that names all axes; it returns the jitted
            function and the tuple of its abstract arguments, with shardings. The reference step by default.
        maxtext: MaxText's own step instead, with the settings on record.
        python: the interpreter where MaxText or the user's step is installed; this one by default.
        effort: of the compiler. ``least`` gives HBM and collectives, but no step time.
        engine: ``local`` or ``ray://HOST:PORT``.
        limits: on time and memory of each compilation.
        flags: of the TPU compiler, added to those of the run: ``--name=value``; the last of a name counts.
        mapping: a checked mapping program that the step is compiled under; of it a user's own step gets the mesh.

    Raises:
        UsageError: ``maxtext`` is given with ``train_step`` or ``mapping``, or a flag is none.
    """

    train_step: str | None = None
    maxtext: bool = False
    python: str = ""
    effort: Effort = "full"
    engine: str = LOCAL_ENGINE
    limits: CompileLimits = DEFAULT_LIMITS
    flags: tuple[str, ...] = ()
    mapping: "Program | None" = None

    def __post_init__(self) -> None:
        if self.train_step and self.maxtext:
            raise UsageError("--maxtext and --train-step are mutually exclusive")
        if strays := [flag for flag in self.flags if not flag.startswith("--")]:
            raise UsageError(f"{plain(strays[0], 60)} is no flag", where="--flags", hint="write --name=value")
        if self.mapping and self.maxtext:
            hint = "`asap map explain` prints the logical_axis_rules that MaxText takes"
            raise UsageError("--mapping is for the reference step and --train-step, not for --maxtext", hint=hint)

    @property
    def is_reference(self) -> bool:
        """Whether the program is the reference step."""
        return self.train_step is None and not self.maxtext

    def to_record(self) -> dict[str, Any]:
        """The step and the effort, for a worklog. Interpreter and engine belong to the machine and are left out."""
        return {"train_step": self.train_step, "maxtext": self.maxtext, "effort": self.effort}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "CompileOptions":
        """The options on record; those of the reference step where a worklog has none.

        An interpreter named in a worklog is never run: it is the one that ``ASAP_PYTHON`` names, or this one.
        """
        return cls(
            train_step=record.get("train_step"),
            maxtext=record.get("maxtext", False),
            python=os.environ.get(PYTHON_VARIABLE, ""),
            effort=record.get("effort", "full"),
        )


REFERENCE_STEP = CompileOptions()


def find_source(train_step: str) -> tuple[tuple[str, ...], str]:
    """Import path of a user's training step, and the SHA-256 of the sources of its package.

    Raises:
        UsageError: it is not ``package.module:function``, or there is no such module.
    """
    module, colon, name = train_step.partition(":")
    if not (module and colon and name):
        raise UsageError("must be package.module:function", where=f"--train-step {train_step}")
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


FLAGS_VARIABLE = FLAG_VARIABLES[0]

_OVERLAP = (
    "--xla_tpu_enable_async_collective_fusion=true",
    "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true",
    "--xla_tpu_enable_async_collective_fusion_multiple_steps=true",
    "--xla_tpu_overlap_compute_collective_tc=true",
    "--xla_enable_async_all_gather=true",
)
_DATA_PARALLEL = (
    "--xla_tpu_enable_data_parallel_all_reduce_opt=true",
    "--xla_tpu_data_parallel_opt_different_sized_ops=true",
)
_NO_WINDOWED_EINSUM = "--xla_jf_spmd_threshold_for_windowed_einsum_mib=1000000"
_NO_BUNDLE_COST_MODEL = ("--xla_tpu_use_bundle_aware_cost_model_for_fusions=false",)
"""By default the compiler schedules the machine code of every fusion that it considers: an 8B decoder with sequences of
8192 did not compile for v6e within 15 minutes. Without, it took five to twelve (two shared cores)."""

RECOMMENDED: Mapping[str, tuple[str, ...]] = {
    "v4": ("--xla_enable_async_all_gather=true", _NO_WINDOWED_EINSUM),
    "v5e": (*_DATA_PARALLEL, *_OVERLAP, _NO_WINDOWED_EINSUM),
    "v5p": (
        *_DATA_PARALLEL,
        *_OVERLAP,
        "--xla_tpu_megacore_fusion_allow_ags=false",
        "--xla_enable_async_collective_permute=true",
        "--xla_tpu_enable_ag_backward_pipelining=true",
        _NO_WINDOWED_EINSUM,
    ),
    "v6e": ("--xla_tpu_scoped_vmem_limit_kib=98304", *_OVERLAP, _NO_WINDOWED_EINSUM, *_NO_BUNDLE_COST_MODEL),
    "tpu7x": (_NO_WINDOWED_EINSUM,),
}
"""MaxText: configs/tpu/{v4,v5e,v5p}/*.sh and benchmarks/xla_flags_library.py (DENSE_VMEM_LIMIT_FLAG, CF_FOR_ALL_GATHER,
DISABLE_COLLECTIVE_MATMUL, DISABLE_BUNDLE_AWARE_COST_MODEL), https://github.com/AI-Hypercomputer/maxtext. Where
something is kept in host memory, the group ``host_offload`` of :mod:`asap.flags` comes on top."""


def compiler_flags(chip: str, environment: Mapping[str, str], plan: Plan) -> tuple[str, ...]:
    """Flags for a plan on a chip; ``environment`` is the recorded environment of the experiment."""
    stated = environment.get(FLAGS_VARIABLE) or environment.get(SETTING) or os.environ.get(FLAGS_VARIABLE)
    if stated:
        return tuple(stated.split())
    recommended = RECOMMENDED.get(chip, ())
    offloads = plan.offload or plan.moves_activations
    return recommended + flag_group("host_offload") if recommended and offloads else recommended


def maxtext_settings(experiment: Experiment, plan: Plan) -> dict[str, Any]:
    """Settings with which MaxText runs an experiment under a plan: those on record, overridden by the plan.

    Raises:
        InsufficientEvidenceError: the experiment has no MaxText settings on record.
        PlanError: MaxText cannot express the plan.
    """
    own = ((key, v) for key, v in experiment.hyperparameters.items() if not key.startswith(OURS))
    recorded = {key: v for key, v in own if v != REDACTED and key != "base_config"}
    if experiment.workload.framework != "MaxText" or not recorded:
        hint = "`asap experiments add ID --config run.yml`"
        raise InsufficientEvidenceError("no MaxText settings are on record", where=experiment.id, hint=hint)
    batch, layers = experiment.workload.global_batch, experiment.model.layers if experiment.model else None
    topology = experiment.hardware.topology
    overrides = to_settings(spec("maxtext"), plan, recorded, global_batch=batch, layers=layers, topology=topology)
    return {**recorded, **{key: yaml.safe_load(value) for key, value in overrides.items()}}
