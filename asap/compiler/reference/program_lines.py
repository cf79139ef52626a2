"""What the lines of a mapping program say of the reference step, layer by layer. Needs no jax."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from asap.compiler.reference.layout import Said
from asap.core.errors import PlanError
from asap.mapping.coverage import Coverage, matches
from asap.mapping.language.format import format_decision
from asap.mapping.language.program import Decision, Order, Program, Sharding, TensorSetting
from asap.mapping.plan_program import beyond_plan, plan_of, policy_of
from asap.mapping.sharding import shardings
from asap.mapping.target import Target
from asap.models import Workload
from asap.plans.remat import Policy

Span = tuple[int, int] | None
"""First and last layer; ``None`` outside of layers."""

_KEYWORDS: tuple[Literal["shard", "constrain"], ...] = ("shard", "constrain")


@dataclass(frozen=True)
class ProgramLines:
    """Shardings and policies by layer, and the layers at which they change; without fields those of no program."""

    axes: Mapping[tuple[str, str], tuple[tuple[Span, Said], ...]] = field(default_factory=dict)
    policies: tuple[tuple[Span, Policy], ...] = ()
    cuts: tuple[int, ...] = ()

    @classmethod
    def of(cls, target: Target, program: Program) -> "ProgramLines":
        """The lines of a checked program."""
        axes: dict[tuple[str, str], list[tuple[Span, Said]]] = {}
        for keyword in _KEYWORDS:
            for found in shardings(target, program, keyword):
                said = {split.dimension.name: split.axes for split in found.splits if split.line}
                axes.setdefault((keyword, found.place.tensor.name), []).append((found.place.layers, said))
        coverage = Coverage(target, "remat", program)
        policies = [
            (coverage.places[bit].layers, policy_of(line.value.text))
            for bit, line in coverage.holding().items()
            if isinstance(line, TensorSetting)
        ]
        ranges = [d.layers for d in program.decisions if isinstance(d, Sharding | TensorSetting) and d.layers]
        cuts = {cut for layers in ranges for cut in (layers.first.value, layers.last.value + 1)}
        return cls({key: tuple(found) for key, found in axes.items()}, tuple(policies), tuple(sorted(cuts)))

    def said(self, keyword: Literal["shard", "constrain"], name: str, layer: int | None = None) -> Said:
        """What lines say of a tensor or an activation in a layer."""
        found = self.axes.get((keyword, name), ())
        return next((said for span, said in found if _holds(span, layer)), {})

    def remat(self, layer: int) -> Policy | None:
        """What lines say of the rematerialisation of a layer."""
        return next((policy for span, policy in self.policies if _holds(span, layer)), None)


NO_LINES = ProgramLines()


def lines_text(program: Program | None) -> str:
    """The decisions of a program that its plan does not say, in an order of their own; with the mesh that they need."""
    if program is None:
        return ""
    lines = sorted({format_decision(decision) for decision in beyond_plan(program)})
    return "\n".join((format_decision(program.mesh), *lines)) if lines and program.mesh else ""


def check_program_expressible(program: Program, workload: Workload, slices: int, devices_per_chip: int) -> None:
    """Raise a PlanError if the reference step does not do what a line says."""
    plan = plan_of(program)
    on_device = bool(workload.head_gathered_once) and (workload.loss_chunks or 1) > 1
    for decision in beyond_plan(program):
        reason = _inexpressible(decision, plan.degree("stage") > 1, slices, devices_per_chip)
        if on_device and _is_about_logits(decision):
            reason = "the reference step cannot constrain logits that each device computes for itself"
        if reason:
            raise PlanError(reason, where=f"line {decision.at}")


def _is_about_logits(decision: Decision) -> bool:
    return (
        isinstance(decision, Sharding)
        and decision.keyword == "constrain"
        and any(matches(name.text, "logits") for name in decision.names)
    )


def _inexpressible(decision: Decision, pipelined: bool, slices: int, devices_per_chip: int) -> str | None:
    if isinstance(decision, TensorSetting) and decision.keyword != "remat":
        return f"the reference step has no {decision.keyword} of single tensors"
    if isinstance(decision, Sharding | TensorSetting) and decision.layers and pipelined:
        return "the reference step pipelines only layers that are mapped alike"
    if isinstance(decision, Order) and (slices > 1 or devices_per_chip > 1):
        return "the order of devices is that of one slice, of chips with one device each"
    return None


def _holds(span: Span, layer: int | None) -> bool:
    return span is None or (layer is not None and span[0] <= layer <= span[1])
