"""The JSON that a run of torchtitan writes (``debug.save_config_file``), in the names of its TOML files.

Since 2026 its configurations are Python: ``model_spec`` has the whole model, an optimizer has groups of parameters, and
what is recomputed is a class, whose fields alone are in the JSON (``Trainer.Config.to_dict``).
"""

from collections.abc import Mapping
from typing import Any

from asap.experiments.experiment import Experiment
from asap.models import Architecture
from asap.stacks.torchtitan.lines import PYTHON

_SPEC, _RECOMPUTATION, _OPTIMIZER = "model_spec", "activation_checkpoint", "optimizer"
_PRECISION_UNKNOWN = "whether matrix products run in fp8 is not in the file: add workload.precision=fp8 where they do"


def is_saved(values: Mapping[str, Any]) -> bool:
    """Whether a configuration is the JSON of a run since 2026."""
    return isinstance(values.get(_SPEC), dict)


def in_names_of_toml(values: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with name and flavor of the model, the mode of recomputation and the optimizer's name."""
    spec = values[_SPEC]
    named: dict[str, Any] = {key: value for key, value in values.items() if key != _SPEC}
    named["model"] = {"name": spec.get("name"), "flavor": spec.get("flavor")}
    named[_RECOMPUTATION] = _recomputation(values.get(_RECOMPUTATION))
    if name := _optimizer(values.get(_OPTIMIZER)):
        named[_OPTIMIZER] = {"name": name}
    return named


def with_what_is_saved(experiment: Experiment, values: Mapping[str, Any]) -> Experiment:
    """The record with what only the JSON tells: the model's shapes, moments in bf16, and that fp8 is not told."""
    workload, model, notes = experiment.workload, experiment.model, ()
    if model is not None:
        model, notes = _with_shapes(model, values)
    if workload.precision == "bf16":
        workload, notes = workload.model_copy(update={"precision": None}), (*notes, _PRECISION_UNKNOWN)
    if _within(values, _OPTIMIZER, "implementation") == "fused_opt_states_bf16":
        moments = {"first_moment_precision": "bf16", "second_moment_precision": "bf16"}
        workload = workload.model_copy(update=moments)
    settings = experiment.hyperparameters | {PYTHON: True}
    update = {"model": model, "workload": workload, "hyperparameters": settings, "notes": (*experiment.notes, *notes)}
    return experiment.model_copy(update=update)


def _with_shapes(known: Architecture, values: Mapping[str, Any]) -> tuple[Architecture, tuple[str, ...]]:
    """The model with the layers, width and vocabulary of the file, which win over those of its flavor."""
    layers = _within(values, _SPEC, "model", "layers") or _within(values, _SPEC, "model", "n_layers")
    shapes = {
        "layers": len(layers) if isinstance(layers, list | dict) else layers,
        "d_model": _within(values, _SPEC, "model", "dim"),
        "vocab": _within(values, _SPEC, "model", "vocab_size"),
    }
    shapes = {field: value for field, value in shapes.items() if type(value) is int and value > 0}
    changed = {field: value for field, value in shapes.items() if getattr(known, field) != value}
    if not changed:
        return known, ()
    if known.layers is None:
        return known.model_copy(update=changed), ()
    note = f"the model has {', '.join(f'{field}={value}' for field, value in changed.items())}, unlike its flavor"
    if "d_model" in changed:
        return Architecture(name=known.name).model_copy(update=shapes), (f"{note}: its other shapes are unknown",)
    return known.model_copy(update=changed), (note,)


def _recomputation(said: Any) -> dict[str, Any]:
    """As a mode; a class is told by the fields that it alone has."""
    if not isinstance(said, dict):
        return {"mode": "none"}
    selective = {"mode": "selective", "selective_ac_option": "op"}
    if "mode" in said:
        return selective | said
    if "memory_budget" in said:
        return {"mode": "memory_budget"}
    return selective if "force_recompute_mm_shapes_by_fqns" in said else {"mode": "full"}


def _optimizer(said: Any) -> str | None:
    """The optimizer of the last group of parameters, which takes what the others leave."""
    groups = said.get("param_groups") if isinstance(said, dict) else None
    last = groups[-1] if isinstance(groups, list) and groups else None
    return str(last["optimizer_name"]) if isinstance(last, dict) and "optimizer_name" in last else None


def _within(values: Any, *path: str) -> Any:
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values
