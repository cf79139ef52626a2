"""The training state: where optimizer and parameters are kept, in which precision, and which optimizer it is."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from asap.levers.lever import PRESENT, Lever, Run, Value, set_to
from asap.plans import Plan
from asap.plans.degrees import workload_under
from asap.plans.plan import Offload
from asap.stacks.registry import contracts

STATE: tuple[Offload, ...] = ("optimizer", "parameters")
"""What the lever moves; where activations wait is rematerialisation's."""


def _places(run: Run) -> tuple[Value, ...]:
    """The optimizer's state there and back; of parameters under XLA only the way back, as a step has all of them on the
    device at its peak (MaxText's train.py with NNX modules, and the compiler's memory plan; docs/concepts/advice.md).
    """
    both = contracts()[run.stack].moves_parameters  # ``CPUOffloadPolicy`` of PyTorch
    moved: tuple[Offload, ...] = ("optimizer", "parameters") if both else ("optimizer",)

    def toggled(plan: Plan) -> Plan:
        kept = tuple(what for what in plan.offload if what not in moved)
        return plan.model_copy(update={"offload": kept if "optimizer" in plan.offload else (*moved, *kept)})

    if not run.xla or "parameters" not in run.plan.offload:
        return (PRESENT, Value(toggled))
    return (PRESENT, Value(toggled), Value(_in_hbm), Value(lambda plan: _in_hbm(toggled(plan))))


def _in_hbm(plan: Plan) -> Plan:
    return plan.model_copy(update={"offload": tuple(what for what in plan.offload if what != "parameters")})


OFFLOAD = Lever(
    name="offload",
    title="optimizer state or parameters in host memory",
    changes="time: copies over the host's link, both ways, in every step; HBM: moments, of parameters none at the peak;"
    " numerics: none",
    known="modelled",
    read=lambda plan: "+".join(what for what in STATE if what in plan.offload) or "none",
    values=_places,
)


StateSetting = Literal["first_moment", "second_moment", "weight_precision"]
STATE_SETTINGS: tuple[StateSetting, ...] = get_args(StateSetting)


def _narrowing(name: StateSetting, title: str, changes: str) -> Lever:
    def read(plan: Plan) -> str:
        return getattr(plan, name) or "default"

    def values(run: Run) -> tuple[Value, ...]:
        return (PRESENT,) if _is_narrow(name, run) else (PRESENT, set_to(**{name: "bf16"}))

    return Lever(
        name=name, title=title, changes=changes, known="modelled", read=read, values=values,
        on_request=True,
    )  # fmt: skip


def _is_narrow(name: StateSetting, run: Run) -> bool:
    """Whether it is in bf16 already; where JAX keeps weights in bf16, it keeps all of the state so."""
    now = workload_under(run.plan, run.workload)
    of = {"first_moment": now.first_moment_precision, "second_moment": now.second_moment_precision}
    return "bf16" in (of.get(name), now.weight_precision)


_LESS_TRAFFIC = "time: a little less optimizer traffic; HBM: 2 bytes a parameter; numerics: the optimizer's"
PRECISIONS: tuple[Lever, ...] = (
    _narrowing("first_moment", "first moment in bf16", _LESS_TRAFFIC),
    _narrowing("second_moment", "second moment in bf16", _LESS_TRAFFIC),
    _narrowing(
        "weight_precision",
        "weights in bf16",
        "time: less optimizer traffic; HBM: half of parameters, gradients and moments; numerics: all updates",
    ),
)


def _optimizers(run: Run) -> tuple[Value, ...]:
    now = (workload_under(run.plan, run.workload).optimizer or "adam").casefold()
    return (PRESENT, set_to(optimizer="muon")) if now.startswith("adam") else (PRESENT,)


OPTIMIZER = Lever(
    name="optimizer",
    title="Muon",
    changes="time: the products of its orthogonalisation, which no prediction holds; HBM: 4 bytes a parameter;"
    " numerics: all updates",
    known="modelled",
    read=lambda plan: plan.optimizer or "default",
    values=_optimizers,
    on_request=True,
)


FAMILIES = ("adamw", "adafactor", "adam_pax", "adam", "lion", "muon", "sgd momentum", "sgd")
_FAMILY = re.compile("|".join(FAMILIES))
_WITH_BITS = re.compile(r"adam\w{0,40}?_?(32|8|4)bit$")
_OF_BITS = {"32": "fp32", "8": "int8", "4": "fp4"}
PAGED = "paged"
_MOMENTUM = ("momentum", "sgd_momentum")


def optimizer_fields(name: str, settings: Mapping[str, object] = MappingProxyType({})) -> dict[str, str]:
    """What an optimizer's name, and settings of a run beside it, say of a workload.

    ``paged_adamw_8bit`` → ``paged adamw`` with moments in 8 bits, whatever weights have; a name of no family stays. SGD
    keeps a moment only where a setting gives it some momentum.
    """
    said = name.casefold()
    found, bits = _FAMILY.search(said), _WITH_BITS.search(said.replace("_bnb_", "_"))
    family = f"{PAGED} " * said.startswith(PAGED) + found[0] if found else said
    momentum = (value for key, value in settings.items() if key.rpartition(".")[2] in _MOMENTUM)
    if family == "sgd" and any(str(value or 0).strip("0.") for value in momentum):
        family = "sgd momentum"
    moments = ("first_moment_precision", "second_moment_precision")
    return {"optimizer": family, **(dict.fromkeys(moments, _OF_BITS[bits[1]]) if bits else {})}
