"""What the training step keeps between steps: parameters and moments, with their type, memory kind and layout."""

from typing import Any

import jax
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import NamedSharding

from asap.compiler.reference.decoder import Decoder
from asap.compiler.reference.parameters import Parameter
from asap.compiler.reference.program_lines import KEPT_TYPES
from asap.plans import Plan

HOST = "pinned_host"


def abstract_state(decoder: Decoder, plan: Plan) -> dict[str, Any]:
    """Parameters and both moments, as the plan and the lines of a mapping program keep them.

    Moments have the type of their parameter and its layout. In host memory lie the parameters that a line or the plan
    puts there, and the moments if the plan offloads the optimizer.
    """

    def parameter(found: Parameter) -> Any:
        memory = found.stored.memory or (HOST if "parameters" in plan.offload else "")
        return _abstract(decoder, found, memory == HOST)

    def moment(found: Parameter) -> Any:
        return _abstract(decoder, found, "optimizer" in plan.offload)

    tree = decoder.parameters()
    parameters, moments = (jax.tree.map(each, tree, is_leaf=_is_parameter) for each in (parameter, moment))
    step = jax.ShapeDtypeStruct((), "int32", sharding=decoder.layout.sharding((), ()))
    return {"parameters": parameters, "mean": moments, "variance": moments, "step": step}


def initial_state(decoder: Decoder, plan: Plan, seed: int = 0) -> dict[str, Any]:
    """Random parameters, for a step that is run."""
    abstract = abstract_state(decoder, plan)
    generator = np.random.default_rng(seed)

    def draw(leaf: Any) -> Any:
        scale = leaf.shape[-2] ** -0.5 if leaf.ndim > 1 else 0.0
        values = scale * generator.standard_normal(leaf.shape) + (scale == 0.0)
        return jax.device_put(values.astype(leaf.dtype), leaf.sharding)

    def zeros(leaf: Any) -> Any:
        return jax.device_put(np.zeros(leaf.shape, leaf.dtype), leaf.sharding)

    rest = {name: jax.tree.map(zeros, abstract[name]) for name in ("mean", "variance", "step")}
    return {"parameters": jax.tree.map(draw, abstract["parameters"]), **rest}


def on_host(state: Any) -> Any:
    """Which arrays of an abstract state lie in host memory."""
    return jax.tree.map(lambda leaf: leaf.sharding.memory_kind == HOST, state)


def moved(arrays: Any, which: Any, space: Any) -> Any:
    """The arrays, some of them moved into a memory space.

    Args:
        arrays: a tree.
        which: the same tree of bools.
        space: of the device, or of its host.
    """
    return jax.tree.map(lambda array, move: jax.device_put(array, space) if move else array, arrays, which)


def formats(state: Any) -> Any:
    """Sharding of each array of an abstract state, with its layout where a line says one."""
    return jax.tree.map(lambda leaf: leaf.format if leaf.format.layout else leaf.sharding, state)


def _abstract(decoder: Decoder, found: Parameter, host: bool) -> Any:
    sharding = decoder.layout.sharding(found.shape, found.names, found.said)
    if host:
        sharding = sharding.with_memory_kind(HOST)
    dtype = KEPT_TYPES.get(found.stored.dtype, decoder.weight_dtype)
    return jax.ShapeDtypeStruct(found.shape, dtype, sharding=_format(found, sharding))


def _format(found: Parameter, sharding: NamedSharding) -> Format | NamedSharding:
    """The layout that a line says: ``col`` has the first dimension of a layer's tensor as the fastest."""
    if not found.stored.layout:
        return sharding
    dimensions = list(range(len(found.shape)))
    stacked = found.names[:1] == ("layers",)
    if found.stored.layout == "col":
        dimensions[stacked:] = reversed(dimensions[stacked:])
    return Format(Layout(tuple(dimensions)), sharding)


def _is_parameter(leaf: Any) -> bool:
    return isinstance(leaf, Parameter)
