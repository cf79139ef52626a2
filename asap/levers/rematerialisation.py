"""Rematerialisation: what the backward pass computes again, and which activations wait in host memory meanwhile."""

from fractions import Fraction

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.models import Architecture
from asap.plans import Plan, Remat
from asap.plans.remat import Module, Policy, RecomputedLayers, RecomputedModules, SavedTensors, Tensor
from asap.stacks.maxtext.rematerialisation import always_recomputes
from asap.stacks.trainer.arguments import RECOMPUTE, recomputation_key

_NAMED: dict[str, tuple[Remat, ...]] = {
    "maxtext": tuple(policy for policy in Remat if policy is not Remat.SELECTIVE),
    "torchtitan": (Remat.NONE, Remat.MINIMAL, Remat.FULL),
    "nanotron": (Remat.NONE, Remat.FULL),
    "deepspeed": (Remat.NONE, Remat.FULL),
    "axolotl": (Remat.NONE, Remat.FULL),
    "accelerate": (Remat.NONE, Remat.FULL),
    "fsdp": (Remat.NONE, Remat.FULL),
    "settings": (Remat.NONE, Remat.FULL),
}
"""Policies that a stack has by name."""
_QKV: tuple[Tensor, ...] = ("query", "key", "value")
_BY_TENSOR: tuple[tuple[Policy, bool], ...] = (
    (Remat.FULL, True),
    (SavedTensors(_QKV), True),
    (SavedTensors((*_QKV, "context")), True),
    (SavedTensors((*_QKV, "context", "out", "gate", "up")), True),
    (SavedTensors(("context",)), False),
    (SavedTensors((*_QKV, "context")), False),
    (SavedTensors((*_QKV, "context", "out")), False),
    (SavedTensors((*_QKV, "context", "out", "gate")), False),
    (SavedTensors((*_QKV, "context", "out", "gate", "up")), False),
    (SavedTensors((), _QKV), False),
    (SavedTensors((), _QKV), True),
    (SavedTensors((), ("context",)), False),
)
"""Policies tensor by tensor that are tried (MaxText's ``custom``), and whether layer inputs wait on the host: those of
MaxText's benchmarks and of AI-Hypercomputer/tpu-recipes, and what lies between them."""
_MEGATRON = (Remat.NONE, Remat.SELECTIVE, Remat.FULL)
_SHARES = {
    **dict.fromkeys(("megatron", "bridge", "nemo"), (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))),
    "torchtitan": (Fraction(1, 4), Fraction(1, 2)),
}
"""Shares of the layers that a stack can recompute as a whole."""
_OF_MODULES = ("megatron", "bridge")
_DENSE: tuple[tuple[Module, ...], ...] = (("layernorm",), ("layernorm", "mlp"))
_MIXTURE: tuple[tuple[Module, ...], ...] = (("layernorm", "moe_act"), ("layernorm", "moe"))
_LATENT: tuple[tuple[Module, ...], ...] = (("layernorm", "mla_up_proj", "moe_act"),)
"""Modules that recipes of Megatron-Core recompute, by what is trained."""


def apply_policy(plan: Plan, remat: Policy, *, inputs_on_host: bool = False) -> Plan:
    """The plan under a policy; layer inputs go to the host under ``offload``, or where it is said."""
    others = [what for what in plan.offload if what != "activations"]
    moved = [*others, "activations"] if inputs_on_host or remat is Remat.OFFLOAD else others
    return plan.model_copy(update={"remat": remat, "offload": tuple(moved)})


def policies(run: Run) -> tuple[Remat, ...]:
    """The policies that a run's stack has; a stack that is not known is taken for one of its compiler's."""
    if run.stack == "maxtext" and not run.xla:
        return _MEGATRON
    known = _NAMED.get(run.stack, _MEGATRON)
    recomputes = run.stack == "maxtext" and always_recomputes(run.settings)
    return tuple(policy for policy in known if policy is not Remat.NONE or not recomputes)


def partial_policies(run: Run) -> tuple[Policy, ...]:
    """Policies of a run's stack that recompute some layers, or some modules of each."""
    layers = tuple(RecomputedLayers(share) for share in _SHARES.get(run.stack, ()))
    if run.stack not in _OF_MODULES or run.model is None:
        return layers
    return (*layers, *(RecomputedModules(modules) for modules in _modules_of(run.model)))


def _modules_of(model: Architecture) -> tuple[tuple[Module, ...], ...]:
    if not model.is_moe:
        return _DENSE
    return (*_MIXTURE, *(_LATENT if model.kv_lora_rank else ()))


def _read(plan: Plan) -> str:
    host = " with layer inputs on the host" if "activations" in plan.offload and plan.remat is not Remat.OFFLOAD else ""
    return f"{plan.remat.value if plan.remat else 'unknown'}{host}"


def _values(run: Run) -> tuple[Value, ...]:
    if run.plan.remat is None or (run.stack == "deepspeed" and recomputation_key(run.settings) is None):
        return (PRESENT,)
    known = policies(run)
    choices = [(policy, False) for policy in (*known, *partial_policies(run))]
    choices += _BY_TENSOR if Remat.OFFLOAD in known else ()
    now = _read(run.plan)
    plans = [(policy, host) for policy, host in choices if _read(_under(run.plan, policy, host)) != now]
    return (PRESENT, *(_value(policy, host) for policy, host in plans))


def _value(policy: Policy, host: bool) -> Value:
    return Value(lambda plan: _under(plan, policy, host))


def _under(plan: Plan, policy: Policy, host: bool) -> Plan:
    return apply_policy(plan, policy, inputs_on_host=host)


LEVER = Lever(
    name="remat",
    title="rematerialisation",
    changes="time: up to a forward pass; HBM: activations of every layer; numerics: none",
    known="modelled",
    said_by={
        "maxtext": "remat_policy",
        "megatron": "--recompute-granularity",
        "nemo": "activations_checkpoint_granularity",
        "bridge": "recompute_granularity",
        "torchtitan": "activation_checkpoint.mode",
        "nanotron": "parallelism.recompute_layer",
        "deepspeed": RECOMPUTE,
        "axolotl": RECOMPUTE,
        "accelerate": RECOMPUTE,
        "fsdp": "activation checkpointing",
        "settings": "recomputation",
    },
    read=_read,
    values=_values,
)
