"""Layers over pipeline stages of Megatron's core, and which of them are computed again."""

import re
from collections.abc import Mapping
from fractions import Fraction

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.degrees import degree
from asap.plans.plan import Plan
from asap.plans.remat import MODULES as CORE_MODULES
from asap.plans.remat import Policy, RecomputedLayers, RecomputedModules, Remat, recomputed_layers, recomputed_modules
from asap.plans.validity import layers_of_last
from asap.stacks.megatron.releases import LAST, Changes, is_megatron_deepspeed, is_of_swift, is_set, lacks

PIPELINE, VIRTUAL = "pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"
LAYERS_EACH = "num_layers_per_virtual_pipeline_stage"
LAYOUT = "pipeline_model_parallel_layout"
FIRST = "decoder_first_pipeline_num_layers"
_OF_CORE = {FIRST: "num_layers_in_first_pipeline_stage", LAST: "num_layers_in_last_pipeline_stage"}
FIRST_AND_LAST = (*_OF_CORE, *_OF_CORE.values())
COUNTED = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
_GROUPS = ("microbatch_group_size_per_vp_stage", "microbatch_group_size_per_virtual_pipeline_stage")
"""How many microbatches an interleaved stage takes at once, by default as many as there are stages."""
_REPEATED = re.compile(r"\(([^()]+)\)\*(\d{1,4})", re.ASCII)
_WELL_FORMED = re.compile(r"[EtmL|*\d]+", re.ASCII)
_LONGEST = 2_000

Settings = Mapping[str, object]


def repeats_of(arguments: Settings, stages: int, layers: int | None) -> int:
    """Virtual stages that each stage has; raises PlanError where they do not divide."""
    if stages == 1:
        return 1
    if arguments.get(LAYOUT) is not None:
        return _repeats_of(arguments[LAYOUT], stages)
    if arguments.get(LAYERS_EACH) is not None:
        each = degree(arguments, LAYERS_EACH)
        layers = counted_layers(arguments, layers)
        if layers is None or layers % (stages * each):
            raise PlanError(f"{LAYERS_EACH}={each} does not divide {layers or 'unknown'} layers over {stages} stages")
        return layers // (stages * each)
    return degree(arguments, VIRTUAL)


def _repeats_of(layout: object, stages: int) -> int:
    found, rest = divmod(_parts_of(layout), stages)
    if rest or not found:
        raise PlanError(f"{LAYOUT} has {_parts_of(layout)} parts, which {stages} stages do not divide")
    return found


def _parts_of(layout: object) -> int:
    """How many parts a layout has, over all stages."""
    if isinstance(layout, list):
        return len(layout)
    text = str(layout).replace(",", "").replace("\\", "").replace(" ", "")
    if len(text) <= _LONGEST:
        text = _REPEATED.sub(lambda found: found[1] * int(found[2]), text)
    if not _WELL_FORMED.fullmatch(text):
        raise PlanError(f"{LAYOUT} {plain(str(layout), 40)} is no layout", hint='write it like "Et*3|(tt|)*29m|L"')
    return text.count("|") + 1


def counted_layers(current: Settings, layers: int | None) -> int | None:
    """Layers that a pipeline divides: the embedding and the loss are one each, where they are counted."""
    return None if layers is None else layers + sum(is_set(current, key) for key in COUNTED)


def still_counted(plan: Plan, current: Settings, layers: int | None) -> bool:
    """Whether the embedding and the loss stay counted as layers under a plan, whose stages then divide them all."""
    every = counted_layers(current, layers)
    return bool(every) and plan.degree("stage") > 1 and every % (plan.degree("stage") * plan.pipeline_repeats) == 0


def lays_out_stages(arguments: Settings, layers: int | None, stages: int, repeats: int) -> bool:
    """Whether arguments say how many of the decoder layers each stage has, in a way that Megatron's core accepts;
    ``repeats`` are virtual stages of each."""
    if arguments.get(LAYOUT) is not None:
        return True
    said = (str(arguments.get(name, arguments.get(other))) for name, other in _OF_CORE.items())
    ends = [int(text) for text in said if text.isdecimal() and int(text)]
    middle = stages - len(ends)
    if not ends or layers is None or middle < 0 or any(count % repeats for count in ends):
        return False
    rest = layers - sum(ends)
    return rest > 0 and rest % (middle * repeats) == 0 if middle else rest == 0


def staged(plan: Plan, current: Settings, layers: int | None) -> Changes:
    """Arguments by which a plan's virtual stages are said, and its last stage where that has fewer layers.

    Raises:
        PlanError: Megatron-LM, or the fork that runs, has no such stages.
    """
    stages, times = plan.degree("stage"), plan.pipeline_repeats if plan.degree("stage") > 1 else 1
    if times > 1 and plan.microbatches and plan.microbatches % stages and not set(_GROUPS) & set(current):
        taken = f"an interleaved pipeline of {stages} stages takes as many microbatches at once"
        raise PlanError(f"{taken}: {plan.microbatches} are no multiple")
    ends = {} if still_counted(plan, current, layers) else _ends(plan, current, layers)
    return {**_virtual(plan, current, layers, stages, times), **ends}


def _virtual(plan: Plan, current: Settings, layers: int | None, stages: int, times: int) -> Changes:
    said: str | bool = str(times) if times > 1 else False
    if current.get(LAYOUT) is not None:
        kept = stages == degree(current, PIPELINE) and times == _repeats_of(current[LAYOUT], stages)
        return {} if kept else {LAYOUT: False, VIRTUAL: said}
    if (LAYERS_EACH in current or lacks(current, VIRTUAL)) and layers is not None:
        layers = counted_layers(current, layers) if still_counted(plan, current, layers) else layers
        each, rest = divmod(layers or 0, stages * times)
        if rest:
            raise PlanError(f"{layers} layers do not divide into {stages} stages x {times}")
        return {LAYERS_EACH: str(each) if times > 1 else False}
    return {} if times == 1 and str(current.get(VIRTUAL)) == "1" else {VIRTUAL: said}


def by_layers(arguments: Changes, plan: Plan, current: Settings, layers: int | None) -> Changes:
    """Arguments that change, virtual stages said by their layers where these divide evenly: every release has that."""
    every = counted_layers(current, layers) if still_counted(plan, current, layers) else layers
    each, rest = divmod(every or 0, plan.degree("stage") * plan.pipeline_repeats)
    if not arguments.get(VIRTUAL) or is_set(current, VIRTUAL) or is_of_swift(current) or rest or not each:
        return arguments
    return {LAYERS_EACH: str(each)} | {key: value for key, value in arguments.items() if key != VIRTUAL}


def _ends(plan: Plan, current: Settings, layers: int | None) -> Changes:
    """Arguments that leave the last stage what the others do not hold; none where stages divide the layers."""
    stages, times = plan.degree("stage"), plan.pipeline_repeats
    if layers is None or stages == 1 or layers % (stages * times) == 0:
        return {}
    if stages == degree(current, PIPELINE) and lays_out_stages(current, layers, stages, times):
        return {}
    last = layers_of_last(layers, stages)
    if times > 1 or last < 1 or is_megatron_deepspeed(current) or is_set(current, "use_legacy_models"):
        raise PlanError(f"{layers} layers do not divide into {stages} stages x {times}")
    return {FIRST: False, LAST: str(last)}


def in_words_of_core(arguments: Mapping[str, str | bool]) -> Changes:
    """Arguments that change, under the names of Megatron's core; what is said wins over what is left out."""
    said = {_OF_CORE.get(key, key): value for key, value in arguments.items() if value is not False}
    return {name: said.get(name, False) for name in (_OF_CORE.get(key, key) for key in arguments)}


GRANULARITY, MODULES = "recompute_granularity", "recompute_modules"
METHOD, RECOMPUTED_LAYERS = "recompute_method", "recompute_num_layers"
_BETWEEN = str.maketrans(dict.fromkeys("[],()'\"", " "))
"""What stands around the words of a list in a text."""


def remat_of(arguments: Mapping[str, object], layers: int | None = None, chunks: int = 1) -> Policy:
    """What is recomputed; without ``--recompute-granularity`` nothing. ``selective`` recomputes modules, by default
    ``core_attn``; ``block`` layers of each of the ``chunks`` of a pipeline, and all where the layers are not known.

    Raises:
        PlanError: layers that are no number.
    """
    granularity, method = (str(arguments.get(key)).casefold() for key in (GRANULARITY, METHOD))
    if granularity == "full":
        count = degree(arguments, RECOMPUTED_LAYERS) if is_set(arguments, RECOMPUTED_LAYERS) else 0
        if method != "block" or (count and layers is None):
            return Remat.FULL
        return recomputed_layers(Fraction(count * chunks, layers or 1))
    if granularity == "selective" or is_set(arguments, "recompute_activations"):
        said = arguments.get(MODULES)
        modules = words_of(said)
        known = [module for module in modules if module in CORE_MODULES]
        return Remat.SELECTIVE if said is None or (modules and not known) else recomputed_modules(known)
    return Remat.NONE


def words_of(value: object) -> list[str]:
    """Words of an argument that takes several, also where a text has them as a list: ``[core_attn, mlp]``."""
    said = value if isinstance(value, list | tuple) else () if value is None else (value,)
    return " ".join(map(str, said)).translate(_BETWEEN).split()


def recomputing(plan: Plan, current: Mapping[str, object], layers: int | None) -> Changes:
    """Arguments by which a plan's recomputation is said; none where it is already. Raises like :func:`remat_of`."""
    chunks = plan.degree("stage") * (plan.pipeline_repeats if plan.degree("stage") > 1 else 1)
    if plan.remat is None or plan.remat == remat_of(current, layers, chunks):
        return {}
    every = ("recompute_activations", GRANULARITY, METHOD, RECOMPUTED_LAYERS, MODULES)
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
