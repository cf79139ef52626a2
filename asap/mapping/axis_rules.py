"""MaxText's ``logical_axis_rules`` read into a program, and written from one.

MaxText names the dimensions of its tensors and lays each name over axes of the mesh; a name means the same in every
layer. So a program can say more than the rules, and the rules have names that the language has not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.mapping.coverage import Target, matches
from asap.mapping.language.parse import parse
from asap.mapping.language.program import Program, TensorSetting
from asap.mapping.plan_program import beyond_plan, plan_text
from asap.mapping.sharding import TensorSharding, shardings
from asap.plans import Plan
from asap.plans.axes import LOGICAL_RULES as RULES
from asap.plans.axes import MESH_NAMES
from asap.stacks.registry import code_for


@dataclass(frozen=True)
class Dimension:
    """What a dimension of MaxText is in the language."""

    keyword: Literal["shard", "constrain"]
    names: tuple[str, ...]
    dimension: str


DIMENSIONS: Mapping[str, Dimension] = {
    "vocab": Dimension("shard", ("embedding", "head"), "vocabulary"),
    "embed_vocab": Dimension("shard", ("embedding", "head"), "embed"),
    "q_heads": Dimension("shard", ("query",), "heads"),
    "kv_heads": Dimension("shard", ("key", "value"), "heads"),
    "heads": Dimension("shard", ("out",), "heads"),
    "embed": Dimension("shard", ("query", "key", "value", "out", "gate", "up", "down"), "embed"),
    "mlp": Dimension("shard", ("gate", "up", "down"), "hidden"),
    "exp": Dimension("shard", ("expert_*",), "experts"),
    "embed_moe": Dimension("shard", ("expert_*",), "embed"),
    "mlp_moe": Dimension("shard", ("expert_*",), "hidden"),
    "activation_batch": Dimension("constrain", ("residual",), "batch"),
    "activation_norm_length": Dimension("constrain", ("residual",), "sequence"),
    "activation_embed": Dimension("constrain", ("residual",), "embed"),
    "activation_batch_attn": Dimension("constrain", ("query",), "batch"),
    "activation_length_attn": Dimension("constrain", ("query",), "sequence"),
    "activation_heads": Dimension("constrain", ("query",), "heads"),
    "activation_embed_and_logits_batch": Dimension("constrain", ("logits",), "batch"),
    "activation_length": Dimension("constrain", ("logits",), "sequence"),
    "activation_vocab": Dimension("constrain", ("logits",), "vocabulary"),
}
"""Names in MaxText's configs/base.yml (commit e591f30c) → tensors and activations of the reference step."""


def read_rules(
    framework: str | None, settings: Mapping[str, object], plan: Plan, target: Target
) -> tuple[Program, tuple[str, ...]]:
    """The program of a plan with the rules of a framework's settings, and the names of rules that it has no words for.

    A rule that says what the target does anyway gives no line. Of several rules for a dimension the first counts;
    the others are MaxText's way out where an axis is taken.

    Raises:
        PlanError: two axes of MaxText that are both above 1 are one axis of a plan.
    """
    lines, left_out = [], []
    plan_axes = code_for(framework, "plan_axes")
    named: Mapping[str, str] = plan_axes(settings, plan) if plan_axes else {}
    for name, axes in _first_rules(settings.get(RULES)):
        used = tuple(dict.fromkeys(named[axis] for axis in axes if axis in named))
        known = DIMENSIONS.get(name)
        if known is None:
            if used:
                left_out.append(plain(name, 60))
        elif line := _line(known, used, plan, target):
            lines.append(line)
    return parse(plan_text(plan) + "".join(f"{line}\n" for line in lines))[0], tuple(left_out)


def write_rules(program: Program, target: Target) -> list[tuple[str, list[str]]]:
    """The rules that lay tensors as a program does, where MaxText's own would not; to be merged with these.

    Raises:
        PlanError: the program lays tensors apart that share a name in MaxText, or sets what no rule can say.
    """
    _check_only_shardings(program)
    found: list[tuple[str, list[str]]] = []
    laid = {keyword: list(shardings(target, program, keyword)) for keyword in ("shard", "constrain")}
    for name, known in DIMENSIONS.items():
        axes = _uniform(laid[known.keyword], known, name)
        if axes is not None:
            found.append((name, [MESH_NAMES[axis][0] for axis in axes]))  # pyright: ignore[reportArgumentType]
    _check_all_said(laid)
    return found


def rules_text(rules: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Rules as an override of MaxText: ``logical_axis_rules=[['embed', ['fsdp']]]``."""
    return f"{RULES}=[{', '.join(f'[{name!r}, {list(axes)!r}]' for name, axes in rules)}]"


def _check_only_shardings(program: Program) -> None:
    for decision in beyond_plan(program):
        if isinstance(decision, TensorSetting):
            kind = (
                "one policy of rematerialisation for all layers"
                if decision.keyword == "remat"
                else f"no {decision.keyword} of single tensors"
            )
            raise PlanError(f"{RULES} have {kind}", where=f"line {decision.at}")


def _uniform(laid: Sequence[TensorSharding], known: Dimension, name: str) -> tuple[str, ...] | None:
    """Axes of a dimension, the same for all tensors that have it; ``None`` where no line speaks of it."""
    splits = [
        split
        for sharding in laid
        if any(matches(pattern, sharding.place.tensor.name) for pattern in known.names)
        for split in sharding.splits
        if split.dimension.name == known.dimension
    ]
    different = {split.axes for split in splits}
    line = next((split.line for split in splits if split.line), None)
    if line is None:
        return None
    if len(different) > 1:
        reason = f"{RULES} have one rule, {name}, for {known.dimension} of {', '.join(known.names)}"
        raise PlanError(reason, where=f"line {line.at}", hint="lay all of them alike, in all layers")
    return next(iter(different))


def _check_all_said(laid: Mapping[str, Sequence[TensorSharding]]) -> None:
    for keyword, found in laid.items():
        for sharding in found:
            for split in sharding.splits:
                name = sharding.place.tensor.name
                if (
                    split.line
                    and not any(
                        known.keyword == keyword
                        and known.dimension == split.dimension.name
                        and any(matches(pattern, name) for pattern in known.names)
                        for known in DIMENSIONS.values()
                    )
                    and split.axes != split.dimension.axes
                ):
                    reason = f"{RULES} have no rule for {split.dimension.name} of {name}"
                    raise PlanError(reason, where=f"line {split.line.at}")


def _line(known: Dimension, axes: tuple[str, ...], plan: Plan, target: Target) -> str | None:
    tensors = [
        tensor
        for tensor in target.tensors(known.keyword)
        if any(matches(pattern, tensor.name) for pattern in known.names)
    ]
    dimensions = [d for tensor in tensors for d in tensor.dimensions if d.name == known.dimension]
    usual = {tuple(axis for axis in d.axes if plan.degree(axis) > 1) for d in dimensions}  # pyright: ignore
    if not dimensions or usual == {axes}:
        return None
    held = {tensor.name for tensor in tensors if any(d.name == known.dimension for d in tensor.dimensions)}
    names = [pattern for pattern in known.names if any(matches(pattern, name) for name in held)]
    return f"{known.keyword} {', '.join(names)} by {known.dimension} over {', '.join(axes) or 'none'}"


def _first_rules(rules: object) -> Iterator[tuple[str, tuple[str, ...]]]:
    seen: set[str] = set()
    for rule in rules if isinstance(rules, list | tuple) else ():
        if not isinstance(rule, list | tuple) or len(rule) != 2 or not isinstance(rule[0], str):
            raise PlanError(f"{RULES} must be pairs of a dimension and its axes, not {plain(rule, 40)}")
        name, axes = rule
        if name not in seen:
            seen.add(name)
            yield name, (axes,) if isinstance(axes, str) else tuple(str(axis) for axis in axes or ())
