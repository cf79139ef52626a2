"""What Megatron-LM computes again: whole layers, so many of each stage, or modules of them."""

from collections.abc import Mapping
from fractions import Fraction

from asap.core.errors import PlanError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.plans.degrees import degree
from asap.plans.partial_remat import MODULES as CORE_MODULES
from asap.plans.partial_remat import RecomputedLayers, RecomputedModules
from asap.plans.plan import Plan
from asap.plans.remat import Policy, Remat, recomputed_layers, recomputed_modules
from asap.stacks.megatron.releases import Changes, is_set

GRANULARITY, MODULES = "recompute_granularity", "recompute_modules"
METHOD, RECOMPUTED_LAYERS, LAYER_IDS = "recompute_method", "recompute_num_layers", "recompute_layer_ids"
_CHOICES = {GRANULARITY: ("full", "selective"), METHOD: ("uniform", "block")}
_BETWEEN = str.maketrans(dict.fromkeys("[],()'\"", " "))
"""What stands around the words of a list in a text."""
_OF_ALL = "numbers of decoder layers, the first is 0, as in [0, 1, 2]"


def remat_of(arguments: Mapping[str, object], layers: int | None = None, chunks: int = 1) -> Policy:
    """What is recomputed; without ``--recompute-granularity`` nothing.

    Args:
        arguments: by name.
        layers: decoder layers.
        chunks: virtual stages of the pipeline. ``block`` recomputes so many layers of each, and all where the layers
            are not known. ``selective`` recomputes modules, by default ``core_attn``.

    Raises:
        PlanError: a granularity, method or layers that Megatron-LM does not know.
    """
    granularity = _chosen(arguments, GRANULARITY)
    if granularity == "full":
        method = _chosen(arguments, METHOD)
        count = degree(arguments, RECOMPUTED_LAYERS) if is_set(arguments, RECOMPUTED_LAYERS) else 0
        if (numbered := numbered_layers(arguments, layers)) and layers is not None:
            return recomputed_layers(Fraction(len(numbered), layers))
        if method != "block" or (count and layers is None):
            return Remat.FULL
        return recomputed_layers(Fraction(count * chunks, layers or 1))
    if granularity == "selective" or is_set(arguments, "recompute_activations"):
        said = arguments.get(MODULES)
        modules = words_of(said)
        known = [module for module in modules if module in CORE_MODULES]
        return Remat.SELECTIVE if said is None or (modules and not known) else recomputed_modules(known)
    return Remat.NONE


def numbered_layers(arguments: Mapping[str, object], layers: int | None) -> frozenset[int]:
    """The decoder layers that are named; none where layers are recomputed otherwise.

    Args:
        arguments: by name.
        layers: decoder layers, where they are known. Layers that predict further tokens are counted after these.

    Raises:
        PlanError: something that is no number of a layer.
    """
    said = arguments.get(LAYER_IDS)
    if said is None or str(said).casefold() == "none":
        return frozenset()
    numbers = [digits(word) for word in words_of(said)]
    found = {number for number in numbers if number is not None and number >= 0}
    if not numbers or len(found) < len({*numbers}):
        shown = plain(str(said), 40)
        raise PlanError(f"{LAYER_IDS} must be {_OF_ALL}, not {shown!r}", hint=f"say it: {LAYER_IDS}=0,1,2")
    last = None if layers is None else layers - 1 + (digits(str(arguments.get("mtp_num_layers") or 0)) or 0)
    if last is not None and max(found) > last:
        raise PlanError(f"{LAYER_IDS} names layer {max(found)}, and the last one is {last}", hint="the first is 0")
    return frozenset(number for number in found if layers is None or number < layers)


def words_of(value: object) -> list[str]:
    """Words of an argument that takes several, also where a text has them as a list: ``[core_attn, mlp]``."""
    said = value if isinstance(value, list | tuple) else () if value is None else (value,)
    return " ".join(map(str, said)).translate(_BETWEEN).split()


def _chosen(arguments: Mapping[str, object], key: str) -> str | None:
    """What an argument with a few choices says; ``None`` where it says nothing."""
    said = arguments.get(key)
    word = str(said).casefold()
    if said is None or word in ("", "none", "null", "false"):
        return None
    if word not in _CHOICES[key]:
        either = " or ".join(_CHOICES[key])
        reason = f"{key} must be {either}, not {plain(repr(said), 40)}"
        raise PlanError(reason, hint=f"say it: {key}={_CHOICES[key][0]}")
    return word


def recomputing(plan: Plan, current: Mapping[str, object], layers: int | None) -> Changes:
    """Arguments by which a plan's recomputation is said; none where it is already. Raises like :func:`remat_of`."""
    chunks = plan.degree("stage") * (plan.pipeline_repeats if plan.degree("stage") > 1 else 1)
    if plan.remat is None or plan.remat == remat_of(current, layers, chunks):
        return {}
    every = ("recompute_activations", LAYER_IDS, GRANULARITY, METHOD, RECOMPUTED_LAYERS, MODULES)
    off: Changes = dict.fromkeys(every, False)
    if plan.remat is Remat.FULL:
        return off | {GRANULARITY: "full", METHOD: "uniform", RECOMPUTED_LAYERS: "1"}
    if plan.remat is Remat.SELECTIVE:
        return off | {GRANULARITY: "selective"}
    if plan.remat is Remat.NONE:
        return off
    if isinstance(plan.remat, RecomputedModules):
        return off | {GRANULARITY: "selective", MODULES: " ".join(plan.remat.modules)}
    if isinstance(plan.remat, RecomputedLayers):
        count = str(_recomputed_layers(plan.remat, layers, chunks))
        return off | {GRANULARITY: "full", METHOD: "block", RECOMPUTED_LAYERS: count}
    hint = "full, selective or none; modules, as in selective.layernorm+moe_act; or a share of the layers: full.1/2"
    raise PlanError(f"Megatron-LM has no recomputation like remat={plan.remat.value}", hint=hint)


def _recomputed_layers(policy: RecomputedLayers, layers: int | None, chunks: int) -> int:
    """Layers of each virtual stage that are recomputed."""
    if layers is None:
        raise PlanError(f"remat={policy.value}: how many layers that is of each stage is not known")
    count = policy.share * layers / chunks
    if count.denominator > 1:
        raise PlanError(f"remat={policy.value}: no whole number of the {layers} layers over {chunks} virtual stages")
    return int(count)
