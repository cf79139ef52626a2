"""Pipeline stages with unequal numbers of layers, as Megatron-LM's arguments and its core say them
(``core/transformer/transformer_config.py``)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import degree
from asap.plans.layer_split import layers_of_last
from asap.plans.megatron.deepspeed import is_megatron_deepspeed
from asap.plans.megatron.pipeline_layout import LAYOUT
from asap.plans.megatron.requirements import is_set
from asap.plans.plan import Plan

FIRST, LAST = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"
_OF_CORE = {FIRST: "num_layers_in_first_pipeline_stage", LAST: "num_layers_in_last_pipeline_stage"}
FIRST_AND_LAST = (*_OF_CORE, *_OF_CORE.values())
_STAGES = "pipeline_model_parallel_size"


def lays_out_stages(arguments: Mapping[str, object], layers: int | None, stages: int, repeats: int) -> bool:
    """Whether arguments say how many layers each stage has, in a way that Megatron's core accepts.

    Args:
        arguments: by name.
        layers: decoder layers.
        stages: of the pipeline.
        repeats: virtual stages of each.
    """
    if arguments.get(LAYOUT) is not None:
        return True
    ends = [count for names in _OF_CORE.items() if (count := _layers(arguments, names))]
    middle = stages - len(ends)
    if not ends or layers is None or middle < 0 or any(count % repeats for count in ends):
        return False
    rest = layers - sum(ends)
    return rest > 0 and rest % (middle * repeats) == 0 if middle else rest == 0


def layers_at_ends(plan: Plan, current: Mapping[str, object], layers: int | None) -> dict[str, str | bool]:
    """Arguments that leave the last stage what the others do not hold; none where stages divide the layers.

    Raises:
        PlanError: the launcher has no such stages, or none is left for the last.
    """
    stages, repeats = plan.degree("stage"), plan.pipeline_repeats
    if layers is None or stages == 1 or layers % (stages * repeats) == 0:
        return {}
    if stages == degree(current, _STAGES) and lays_out_stages(current, layers, stages, repeats):
        return {}
    last = layers_of_last(layers, stages)
    if repeats > 1 or last < 1 or is_megatron_deepspeed(current) or is_set(current, "use_legacy_models"):
        raise PlanError(f"{layers} layers do not divide into {stages} stages x {repeats}")
    return {FIRST: False, LAST: str(last)}


def in_words_of_core(arguments: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """Arguments that change, under the names of Megatron's core; what is said wins over what is left out."""
    said = {_OF_CORE.get(key, key): value for key, value in arguments.items() if value is not False}
    return {name: said.get(name, False) for name in (_OF_CORE.get(key, key) for key in arguments)}


def _layers(arguments: Mapping[str, object], names: tuple[str, str]) -> int:
    """A number of layers under either name; 0 where none is said."""
    texts = (str(arguments[name]) for name in names if arguments.get(name) is not None)
    return next((int(text) for text in texts if text.isdecimal()), 0)
