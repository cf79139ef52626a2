"""Settings as YAML to write over those of a configuration."""

import shlex
from collections.abc import Mapping
from typing import Any, cast

import yaml

from asap.core.errors import PlanError
from asap.plans.axes import AXES, Axis
from asap.plans.degrees import micro_batch, sequences_of_a_microbatch
from asap.plans.plan import Plan, Remat
from asap.stacks.reading import INNER, Settings, is_on, is_rest, layout_of, meaning, moves
from asap.stacks.registry import OF_YAML, hook, lacking
from asap.stacks.rules import are_said, facts_of, needed, refusals
from asap.stacks.spec import Spec
from asap.stacks.stack_settings import nested

PRIMUS_MODULE = "primus_module"
"""Among a run's settings: the module of the YAML that trains."""


def yaml_lines(settings: Mapping[str, str], current: Mapping[str, object] | None = None) -> str:
    """Settings by dotted key, a section a line: ``parallelism: {tp: 4}``; those without a section come first.

    Args:
        settings: what changes.
        current: the settings as they are; a section that holds others, too, says that these stay.
    """
    kept = {key.partition(".")[0] for key in current or () if key not in settings and "." in key}
    tree = sorted(nested(settings).items(), key=lambda one: isinstance(one[1], dict))
    stay = {key: "  # its other keys stay" for key, value in tree if isinstance(value, dict) and key in kept}
    return "\n".join(f"{key}: {_in_braces(value)}{stay.get(key, '')}" for key, value in tree)


def _in_braces(value: str | dict[str, Any]) -> str:
    if not isinstance(value, dict):
        return value
    return f"{{{', '.join(f'{name}: {_in_braces(one)}' for name, one in value.items())}}}"


def to_settings(
    spec: Spec,
    plan: Plan,
    current: Settings,
    *,
    global_batch: int | None = None,
    sequence: int | None = None,
    layers: int | None = None,
    topology: tuple[int, ...] | None = None,
) -> dict[str, str]:
    """Settings that have to change for a stack to run a plan.

    Args:
        spec: the table of the stack.
        plan: what to run.
        current: its settings as they are.
        global_batch: sequences in a step.
        sequence: tokens in a sequence, for stacks that count the batch in tokens.
        layers: decoder layers, for stacks that say those of a stage.
        topology: of a slice of TPUs, for those that lay their mesh on it.

    Raises:
        PlanError: the stack has no words for the plan, or refuses it.
    """
    said, recomputing, written = spec.add_defaults(current), hook(spec, "recomputing"), hook(spec, "written")
    if changes := hook(spec, "changes"):
        beside = {"global_batch": global_batch, "layers": layers, "sequence": sequence, "topology": topology}
        return changes(spec, plan, current, **beside)
    _check(spec, plan, said, global_batch)
    wanted = _degrees(spec, plan, said) | _layout(spec, plan, said)
    wanted |= recomputing(said, plan) if recomputing else _recomputation(spec, plan, said)
    for one in spec.offload:
        on = set(one.what) <= set(plan.offload)
        if on != moves(one, said) and (plan.remat is not None or one.what != ("activations",)):
            wanted |= {word.key(said): one.on if on else one.off for word in one.keys}
    wanted |= beside_mesh(spec, plan, said) | _batch(spec, plan, said, global_batch, sequence)
    if written:
        wanted = written(said, plan, wanted, each=micro_batch(plan, global_batch), layers=layers)
    wanted |= needed(spec.rules, facts_of(plan, global_batch, layout_of(spec, said)), said)
    changed = {key: value for key, value in wanted.items() if str(said.get(key)).casefold() != value.casefold()}
    for key in changed:
        if current.get(key) is None and (sign := lacking(spec, current, key)):
            reason = f"a version of {spec.name} that has {sign} has no {key}"
            raise PlanError(reason, hint="a later version has it")
    if set_by_itself := sorted({*spec.fixed} & changed.keys()):
        raise PlanError(f"{spec.name} sets {', '.join(set_by_itself)} itself")
    return changed


def lines_to_paste(spec: Spec, changed: Mapping[str, str], current: Settings | None = None) -> str:
    """Settings as the stack's file or command takes them; a switch that is off comes last.

    Args:
        spec: the table of the stack.
        changed: what changes.
        current: its settings as they are, which decide the form of some stacks' lines.
    """
    if is_of_primus(current):
        yaml_values = hook(spec, "yaml_values")
        return lines_of_primus(yaml_values(changed) if yaml_values else changed, current or {})
    if lines := hook(spec, "lines"):
        return lines(spec, changed, current or {})
    if spec.form == "yaml" or OF_YAML in (current or {}):
        return yaml_lines(changed, current)
    if spec.pythonic:
        changed = {key: value.title() if value in ("true", "false") else value for key, value in changed.items()}
    if spec.form != "switches":
        form = {"options": "--{} {}", "equals": "--{}={}"}.get(spec.form, "{}={}")
        return " ".join(form.format(key, value) for key, value in changed.items())
    return switches_line(changed)


def paste_line(settings: Mapping[str, object]) -> str:
    """Settings as words of a command: ``ici_fsdp_parallelism=16 …``."""
    return " ".join(shlex.quote(f"{key}={value}") for key, value in settings.items())


def switches_line(changed: Mapping[str, str], joint: str = "-") -> str:
    """``--tensor-model-parallel-size 4 --sequence-parallel``; what is to be left out comes last."""
    names = {key: f"--{key.replace('_', joint)}" for key in changed}
    off = [names[key] for key, value in changed.items() if value == "false"]
    on = [
        names[key] if value == "true" else f"{names[key]} {value}" for key, value in changed.items() if value != "false"
    ]
    return " ".join([*on, *(["# without", *off] if off else [])])


def _check(spec: Spec, plan: Plan, said: Settings, global_batch: int | None) -> None:
    axes = spec.axes
    copies = axes.replica or axes.strategy or axes.slices or axes.layout == "replica"
    shares = axes.data or axes.strategy or axes.layout != "replica"
    has = {axis: getattr(axes, axis) for axis in (*INNER, "expert")} | {"replica": copies, "data": shares}
    missing = [axis for axis in AXES if plan.degree(axis) > 1 and not has[axis]]
    if missing:
        raise PlanError(f"{spec.name} has no degree for {' and '.join(missing)}")
    for axis, section in axes.needs.items():
        if plan.degree(cast(Axis, axis)) > 1 and not are_said({f"{section}|{section}.": "on"}, said):
            raise PlanError(f"{spec.name} has a degree for {axis} with {section} alone, which is not said")
    if plan.pipeline_repeats > 1 and not hook(spec, "repeats_of"):
        raise PlanError(f"{spec.name} has no virtual pipeline stages that are written")
    known = {str(value) for word in spec.recompute for value in word.values.values()} | {"none"}
    if plan.remat is not None and plan.remat.value not in known and not hook(spec, "recomputing"):
        hint = " or ".join(sorted(known & set(Remat)))
        raise PlanError(f"{spec.name} has no recomputation like remat={plan.remat.value}", hint=hint)
    left = {*plan.offload} - {what for one in spec.offload if {*one.what} <= {*plan.offload} for what in one.what}
    if left:
        together = "; ".join(" and ".join(sorted(one.what, reverse=True)) + " together" for one in spec.offload)
        raise PlanError(f"{spec.name} offloads {together or 'nothing'}")
    by_code = refuses(said, plan) if (refuses := hook(spec, "refusals")) else ()
    facts = facts_of(plan, global_batch, layout_of(spec, said))
    for reason in (*refusals(spec.rules, facts, said), *by_code):
        raise PlanError(f"{spec.name} refuses it: {reason}")


def _degrees(spec: Spec, plan: Plan, said: Settings) -> dict[str, str]:
    """Settings of the degrees, without those that follow from the others."""
    sizes: dict[str, int] = _sizes(spec, plan)
    keys = {axis: word.key(said) for axis in sizes if (word := getattr(spec.axes, axis)) is not None}
    left = {axis for axis, key in keys.items() if axis != "data" and sizes[axis] == 1 and is_rest(spec, said, key)}
    if "data" in keys and _follows(spec, plan, said, keys):
        left.add("data")
    if (spec.axes.strategy and plan.degree("data") * plan.degree("expert") == 1) or _copies_alone(spec, said):
        left.add("replica")
    return {key: str(sizes[axis]) for axis, key in keys.items() if axis not in left}


def _sizes(spec: Spec, plan: Plan) -> dict[str, int]:
    """Degrees as the stack counts them."""
    axes = spec.axes
    sizes: dict[str, int] = {axis: plan.degree(axis) for axis in (*INNER, "expert", "replica", "data")}  # pyright: ignore[reportArgumentType]
    if axes.slices:
        sizes |= {"replica": plan.ici.replica, "slices": plan.dcn.replica}
    if axes.folded and sizes["expert"] > 1:
        sizes["data"] *= sizes["expert"]
        sizes["expert"] *= sizes["seq"] * sizes["model"]
    if axes.data_of_all:
        sizes["data"] *= sizes["replica"]
    return sizes


def _follows(spec: Spec, plan: Plan, said: Settings, keys: Mapping[str, str]) -> bool:
    """Whether the data degree is left to what the others leave."""
    if _copies_alone(spec, said) and plan.degree("data") == 1:
        return True
    others = any(plan.degree(axis) > 1 for axis in AXES if axis != "data")
    stated = spec.axes.said_beside_others and others
    alone = plan.degree("data") == 1 or plan.degree("replica") == 1 or "replica" in keys
    return is_rest(spec, said, keys["data"]) and alone and not stated


def _copies_alone(spec: Spec, said: Settings) -> bool:
    """Whether all devices have a copy that no setting counts."""
    return spec.axes.strategy is None and not spec.axes.whole and layout_of(spec, said) == "replica"


def _layout(spec: Spec, plan: Plan, said: Settings) -> dict[str, str]:
    """The strategy that lays parameters out as a plan does; the present one where it does so already."""
    word, data, replica = spec.axes.strategy, plan.degree("data") * plan.degree("expert"), plan.degree("replica")
    if word is None or data * replica == 1:
        return {}
    key, present = word.key(said), layout_of(spec, said)
    node = spec.axes.node.key(said) if spec.axes.node else None
    within = node is not None and str(said.get(node)) == str(data)
    wanted = "replica" if data == 1 else "hybrid" if replica > 1 else "data"
    sized = any(getattr(spec.axes, axis) is not None for axis in ("replica", "data"))
    if wanted == "hybrid" and not sized and not within:
        raise PlanError(f"a hybrid strategy shards over the GPUs of a node, not over {data}")
    if wanted == "hybrid" and "hybrid" not in word.values.values():
        wanted = "data"
    if present == wanted or (wanted == "data" and present == "hybrid" and (within or sized)):
        return {}
    chosen = next((text for text, meant in word.values.items() if meant == wanted), None)
    if chosen is None:
        raise PlanError(f"{spec.name} has no {key} that lays parameters out so")
    return {key: _in_case_of(said.get(key), chosen)}


def _in_case_of(present: object, word: str) -> str:
    """A word in lower or upper case where the present one is."""
    return word.lower() if str(present).islower() else word.upper() if str(present).isupper() else word


_BESIDE_MESH = {
    "sequence_parallel": "sequence_parallel",
    "loss_chunks": "loss_chunks",
    "first_moment": "first_moment_precision",
    "weight_precision": "weight_precision",
    "optimizer": "optimizer",
}
"""What a plan says of the workload, and the field whose word says it."""


def beside_mesh(spec: Spec, plan: Plan, said: Settings) -> dict[str, str]:
    """Settings for parts of the step and of the training state, where a plan says others."""
    found: dict[str, str] = {}
    wanted = {name: value for name in _BESIDE_MESH if (value := getattr(plan, name)) is not None}
    for name, value in wanted.items():
        if len(words := spec.workload.get(_BESIDE_MESH[name], ())) != 1 or not words[0].keys:
            raise PlanError(f"{spec.name} has no setting for {name}")
        key = words[0].key(said)
        chosen = next((text for text, meant in words[0].values.items() if meant == value), str(value))
        found[key] = _in_case_of(said.get(key), chosen)
    return found


def _recomputation(spec: Spec, plan: Plan, said: Settings) -> dict[str, str]:
    """Switches that are on and should not be go off; where none is on that should be, the first goes on."""
    if plan.remat is None or not spec.recompute:
        return {}
    wanted = plan.remat.value
    on = {word.key(said): str(meaning(word, said) or "none") for word in spec.recompute}
    if wanted != "none" and wanted in on.values():
        return {}
    written = {
        word.key(said): {str(meant): text for text, meant in reversed(word.values.items())} for word in spec.recompute
    }
    off = {key: texts.get("none", "false") for key, texts in written.items() if on[key] != "none"}
    first = next(iter(written))
    return off if wanted == "none" else off | {first: written[first][wanted]}


def _batch(spec: Spec, plan: Plan, said: Settings, global_batch: int | None, sequence: int | None) -> dict[str, str]:
    batch = spec.batch
    if plan.microbatches is None or global_batch is None:
        return {}
    unit = 1 if batch.unit == "sequences" else sequence
    if unit is None:
        return {}
    each = sequences_of_a_microbatch(plan, plan.microbatches, global_batch)
    word = batch.in_pipeline if batch.in_pipeline and plan.degree("stage") > 1 else batch.micro
    whole = str(said.get(word.key(said))).casefold() in batch.all_at_once and plan.microbatches == 1
    wanted = {} if whole else {word.key(said): str(each * unit)}
    if batch.whole and (batch.accumulation is None or said.get(batch.whole.key(said)) is not None):
        wanted[batch.whole.key(said)] = str(global_batch * unit)
    wanted |= {batch.accumulation.key(said): str(plan.microbatches)} if batch.accumulation else {}
    if plan.microbatches > 1 and not batch.whole and not batch.accumulation:
        raise PlanError(f"{spec.name} has no microbatches")
    return wanted | ({key: "false" for key in batch.alone if is_on(said, key)} if plan.microbatches > 1 else {})


def is_of_primus(settings: Mapping[str, object] | None) -> bool:
    """Whether Primus starts the run."""
    return settings is not None and PRIMUS_MODULE in settings


def lines_of_primus(changed: Mapping[str, str | bool | None], settings: Mapping[str, object]) -> str:
    """Settings by dotted key as YAML of Primus, for the module that trains; ``None`` takes one back."""
    typed = {key: yaml.safe_load(value) if isinstance(value, str) else value for key, value in changed.items()}
    overrides = nested(typed)
    document = {"modules": {str(settings[PRIMUS_MODULE]): {"overrides": overrides}}} if overrides else {}
    return yaml.safe_dump(document, sort_keys=False).rstrip() if document else ""
