"""One training step of the reference decoder: loss, gradients, Adam; jitted, with its abstract arguments."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding
from jaxtyping import Array, Float, Int, PyTree

from asap.compiler.reference.decoder import Decoder, split_batch
from asap.compiler.reference.expressible import check_expressible
from asap.compiler.reference.layout import KEPT_TYPES, NO_LINES, LogicalMesh, ProgramLines, logical_mesh
from asap.compiler.reference.parameters import Parameter
from asap.models import Architecture, Workload
from asap.models.workload import FULL_PRECISION
from asap.plans import Plan, Remat

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
    parameters, moments = (
        jax.tree.map(each, tree, is_leaf=lambda leaf: isinstance(leaf, Parameter)) for each in (parameter, moment)
    )
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


Tokens = Int[Array, "batch sequence"]
Weights = PyTree[Float[Array, "..."]]
Scalar = Float[Array, ""]

_LEARNING_RATE, _BETA1, _BETA2, _EPSILON, _DECAY = 1e-3, 0.9, 0.95, 1e-8, 0.1


@dataclass(frozen=True)
class TrainStep:
    """``function(state, tokens, targets) → (state, loss)``; ``arguments`` are abstract and carry shardings."""

    function: Any
    arguments: tuple[Any, ...]
    decoder: Decoder


def reference_step(
    model: Architecture, workload: Workload, plan: Plan, mesh: Mesh, *, lines: ProgramLines = NO_LINES
) -> TrainStep:
    """The training step of a decoder under a plan, and under the lines of a mapping program where there is one.

    Raises:
        InsufficientEvidenceError: a shape is unknown, or the decoder is of an unsupported kind.
        PlanError: the reference step does not support the plan.
    """
    batch, sequence = check_expressible(model, workload, plan)
    layout = logical_mesh(mesh)
    pipelined = layout.degree("stage") > 1
    microbatches = plan.microbatches or (layout.degree("stage") if pipelined else 1)
    dtype = "float32" if workload.precision in FULL_PRECISION else "bfloat16"
    remat = plan.remat or Remat.FULL
    decoder = Decoder(
        model, layout, remat, dtype, microbatches if pipelined else 1, workload.capacity_factor or 1.0, plan.offload,
        loss_chunks=workload.loss_chunks or 1, head_gathered_once=workload.head_gathered_once is True,
        scanned=workload.scan_layers is not False,
        weight_dtype="bfloat16" if workload.weight_precision == "bf16" else "float32",
        lines=lines,
    )  # fmt: skip
    state = abstract_state(decoder, plan)
    step = _step(decoder, 1 if pipelined else microbatches, on_host(state))
    function = jax.jit(step, donate_argnums=0, **_results(decoder, plan, state))
    tokens = jax.ShapeDtypeStruct(
        (batch, sequence), "int32", sharding=layout.sharding((batch, sequence), ("batch", "sequence"))
    )
    return TrainStep(function, (state, tokens, tokens), decoder)


def _results(decoder: Decoder, plan: Plan, state: Any) -> dict[str, Any]:
    """Where lines lay the state otherwise than the plan, it has to be said that it stays so: XLA would leave the next
    state as the gradients lie. Under a plan both lie alike."""
    kept = formats(state)
    usual = formats(abstract_state(replace(decoder, lines=NO_LINES), plan))
    return {} if kept == usual else {"out_shardings": (kept, None)}


def _step(decoder: Decoder, accumulate: int, host: Any) -> Any:
    """The step; ``host`` says which arrays of the state lie in host memory and are moved to the device and back."""
    names = ("mean", "variance")
    moments_host = {name: host[name] for name in names}

    def step(state: dict[str, Any], tokens: Tokens, targets: Tokens) -> tuple[dict[str, Any], Scalar]:
        parameters = moved(state["parameters"], host["parameters"], jax.memory.Space.Device)
        loss, gradients = _gradients(decoder, accumulate, parameters, tokens, targets)
        moments = moved({name: state[name] for name in names}, moments_host, jax.memory.Space.Device)
        count = state["step"] + 1
        parameters, moments = _adam(parameters, moments, gradients, count)
        return moved({"parameters": parameters, **moments, "step": count}, host, jax.memory.Space.Host), loss

    return step


def _gradients(
    decoder: Decoder, accumulate: int, parameters: Weights, tokens: Tokens, targets: Tokens
) -> tuple[Scalar, Weights]:
    """Loss and gradients; over microbatches one after the other, accumulated in the precision of the weights."""
    loss_and_gradients = jax.value_and_grad(decoder.loss)
    if accumulate == 1:
        return loss_and_gradients(parameters, tokens, targets)
    layout: LogicalMesh = decoder.layout

    def add(total: tuple[Scalar, Weights], batch: tuple[Tokens, Tokens]) -> tuple[tuple[Scalar, Weights], None]:
        return jax.tree.map(jnp.add, total, loss_and_gradients(parameters, *batch)), None

    batches = (split_batch(layout, tokens, accumulate), split_batch(layout, targets, accumulate))
    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, parameters))
    total, _ = jax.lax.scan(add, zero, batches)
    return jax.tree.map(lambda value: value / accumulate, total)


def _adam(
    parameters: Weights, moments: dict[str, Weights], gradients: Weights, count: Int[Array, ""]
) -> tuple[Weights, dict[str, Weights]]:
    """AdamW (arXiv:1711.05101)."""
    mean = jax.tree.map(lambda m, g: _BETA1 * m + (1 - _BETA1) * g, moments["mean"], gradients)
    variance = jax.tree.map(lambda v, g: _BETA2 * v + (1 - _BETA2) * g * g, moments["variance"], gradients)

    def update(
        parameter: Float[Array, "..."], mean: Float[Array, "..."], variance: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        direction = mean / (1 - _BETA1**count) / (jnp.sqrt(variance / (1 - _BETA2**count)) + _EPSILON)
        return (parameter - _LEARNING_RATE * (direction + _DECAY * parameter)).astype(parameter.dtype)

    return jax.tree.map(update, parameters, mean, variance), {"mean": mean, "variance": variance}
