"""Rematerialisation: what the backward pass computes again, and which activations wait in host memory meanwhile."""

from fractions import Fraction
from functools import partial

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.models import Architecture
from asap.plans import Plan, Remat
from asap.plans.remat import Module, Policy, RecomputedLayers, RecomputedModules, SavedTensors, Tensor
from asap.stacks.registry import contracts
from asap.stacks.rules import are_said

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
    known = contracts()[run.stack]
    if known.kin == "jax" and not run.xla:
        return Remat.NONE, Remat.SELECTIVE, Remat.FULL
    keeps_all = are_said(known.keeps_all, run.settings)
    return tuple(policy for policy in map(Remat, known.policies) if policy is not Remat.NONE or keeps_all)


def partial_policies(run: Run) -> tuple[Policy, ...]:
    """Policies of a run's stack that recompute some layers, or some modules of each."""
    known = contracts()[run.stack]
    layers = tuple(RecomputedLayers(Fraction(share)) for share in known.shares)
    if not known.modules or run.model is None:
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
    if run.plan.remat is None or not are_said(contracts()[run.stack].recomputed_by, run.settings):
        return (PRESENT,)
    known = policies(run)
    choices = [(policy, False) for policy in (*known, *partial_policies(run))]
    choices += _BY_TENSOR if Remat.OFFLOAD in known else ()
    now = _read(run.plan)
    plans = [(policy, host) for policy, host in choices if _read(_under(run.plan, policy, host)) != now]
    return (PRESENT, *(Value(partial(_under, policy=policy, host=host)) for policy, host in plans))


def _under(plan: Plan, policy: Policy, host: bool) -> Plan:
    return apply_policy(plan, policy, inputs_on_host=host)


LEVER = Lever(
    name="remat",
    title="rematerialisation",
    changes="time: up to a forward pass; HBM: activations of every layer; numerics: none",
    known="modelled",
    read=_read,
    values=_values,
)
