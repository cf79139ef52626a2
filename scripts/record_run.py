"""Record a sharded decoder training step as a profile: real collectives, small enough to commit.

On the CPU eight virtual devices form the mesh ``data=2 seq=2 model=2``, or the one of ``--mesh``; on GPUs all devices
form ``data``.

    python scripts/record_run.py --out build/cpu-8dev
    python scripts/record_run.py --out build/data-8 --mesh 8x1x1 --size wide
    python scripts/record_run.py --out build/gpu --device gpu

Of a CPU profile only operations and steps are kept: the other four fifths of the events are the thread pools of the
host, and with them go its paths and names. A GPU profile is kept whole, with source paths cut to file names: look for
the name of the host in it before you share it. What the experiment record needs to know is printed as JSON.
"""

import argparse
import json
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

HEAD_DIM = 64
LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
WARM_UP_STEPS = 2

AXES = ("data", "seq", "model")
CPU_MESH = (2, 2, 2)
CPU_DEVICES = 8
CPU_FLAGS = f"--xla_force_host_platform_device_count={CPU_DEVICES}"
DISPATCH = "PjitFunction"
KEPT_STATS = ("hlo_op", "hlo_module", "run_id", "device_ordinal", "step_num", "_r")

Tree = dict[str, Any]


class Size(NamedTuple):
    """Of the decoder and its batch."""

    layers: int
    d_model: int
    heads: int
    kv_heads: int
    d_ff: int
    vocab: int
    batch: int
    sequence: int


SIZES = {
    "small": Size(layers=2, d_model=256, heads=4, kv_heads=2, d_ff=512, vocab=1024, batch=8, sequence=256),
    "wide": Size(layers=2, d_model=512, heads=8, kv_heads=4, d_ff=1024, vocab=2048, batch=8, sequence=64),
    "middle": Size(layers=3, d_model=384, heads=6, kv_heads=2, d_ff=1024, vocab=1024, batch=8, sequence=128),
    "deep": Size(layers=4, d_model=256, heads=4, kv_heads=4, d_ff=1024, vocab=512, batch=8, sequence=128),
    "long": Size(layers=2, d_model=256, heads=4, kv_heads=2, d_ff=512, vocab=1024, batch=8, sequence=512),
    "batched": Size(layers=3, d_model=320, heads=6, kv_heads=2, d_ff=768, vocab=1280, batch=16, sequence=128),
    "grouped": Size(layers=3, d_model=320, heads=8, kv_heads=2, d_ff=640, vocab=768, batch=8, sequence=256),
    "paired": Size(layers=2, d_model=384, heads=8, kv_heads=4, d_ff=768, vocab=1536, batch=16, sequence=192),
    "broad": Size(layers=3, d_model=448, heads=6, kv_heads=2, d_ff=896, vocab=512, batch=16, sequence=128),
    "short": Size(layers=3, d_model=448, heads=4, kv_heads=4, d_ff=1408, vocab=512, batch=16, sequence=64),
    "high": Size(layers=4, d_model=512, heads=6, kv_heads=2, d_ff=768, vocab=2048, batch=8, sequence=160),
    "lean": Size(layers=3, d_model=320, heads=8, kv_heads=4, d_ff=1024, vocab=2048, batch=16, sequence=64),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="log directory to write plugins/profile/<run>/ into")
    parser.add_argument("--run", default="run", help="name of the run")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--mesh", type=degrees, default=CPU_MESH, help="degrees of data, seq and model on the CPU")
    parser.add_argument("--size", choices=SIZES, default="small", help="of the decoder and its batch")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--first", action="store_true", help="of all processes, while it records; Linux, as root")
    arguments = parser.parse_args()
    size = SIZES[arguments.size]

    on_cpu = arguments.device == "cpu"
    if on_cpu:
        os.environ["XLA_FLAGS"] = CPU_FLAGS
        jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    shape = arguments.mesh if on_cpu else (jax.device_count(), 1, 1)
    with jax.set_mesh(jax.make_mesh(shape, AXES, axis_types=(AxisType.Auto,) * len(AXES))):
        profile = record(size, arguments.steps, with_hlo=not on_cpu, first=arguments.first)
    target = arguments.out / "plugins" / "profile" / arguments.run / "host.xplane.pb"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(trimmed(profile) if on_cpu else profile)
    print(json.dumps(facts(size, shape), indent=2))


def degrees(text: str) -> tuple[int, ...]:
    """The degrees of ``2x2x2``: three that multiply to the eight virtual devices."""
    found = tuple(int(degree) for degree in text.split("x"))
    if len(found) != len(AXES) or math.prod(found) != CPU_DEVICES:
        raise argparse.ArgumentTypeError(f"{text} is not three degrees with the product {CPU_DEVICES}")
    return found


def record(size: Size, steps: int, with_hlo: bool, first: bool = False) -> bytes:
    """Compile, warm up, and record ``steps`` marked steps. XProf makes no use of the HLO of a CPU."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = with_hlo
    state, tokens = initial_state(size)
    for _ in range(WARM_UP_STEPS):
        state = jax.block_until_ready(train_step(state, tokens))
    with tempfile.TemporaryDirectory() as folder:
        with before_others() if first else nullcontext(), jax.profiler.trace(folder, profiler_options=options):
            for number in range(steps):
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    state = jax.block_until_ready(train_step(state, tokens))
        (recorded,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
        return recorded.read_bytes()


@contextmanager
def before_others() -> Iterator[None]:
    """All threads run before those of other processes (sched(7), SCHED_RR), where that is allowed.

    Beside other work Linux otherwise keeps most threads on one of two cores, even if their session has precedence.
    """
    _schedule(os.SCHED_RR, 1)
    try:
        yield
    finally:
        _schedule(os.SCHED_OTHER, 0)


def _schedule(policy: int, priority: int) -> None:
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):
            os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


def trimmed(profile: bytes) -> bytes:
    """The operations, the step marks and the dispatches in them, by which XProf recognises a step."""
    host = jax.profiler.ProfileData.from_serialized_xspace(profile).find_plane_with_name("/host:CPU")
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers) + 1)
    lines = [line for line in (_line_text(line, numbers) for line in host.lines) if "events" in line]
    tables = [
        f"{table} {{ key: {number} value {{ id: {number} name: {json.dumps(name)} }} }}"
        for table in ("event_metadata", "stat_metadata")
        for name, number in numbers.items()
    ]
    text = f'planes {{ name: "/host:CPU" {" ".join(lines + tables)} }}'
    return jax.profiler.ProfileData.text_proto_to_serialized_xspace(text)


def _line_text(line: Any, numbers: dict[str, int]) -> str:
    events = []
    for event in line.events:
        stats = {name: value for name, value in event.stats if name in KEPT_STATS}
        if "hlo_op" in stats or "step_num" in stats or event.name.startswith(DISPATCH):
            values = (
                f"ref_value: {numbers[value]}" if isinstance(value, str) else f"int64_value: {value}"
                for value in stats.values()
            )
            pairs = zip(stats, values, strict=True)
            fields = "".join(f"stats {{ metadata_id: {numbers[name]} {value} }} " for name, value in pairs)
            start, duration = round(event.start_ns * 1000), round(event.duration_ns * 1000)
            times = f"offset_ps: {start} duration_ps: {duration}"
            events.append(f"events {{ metadata_id: {numbers[event.name]} {times} {fields}}}")
    return f"lines {{ name: {json.dumps(line.name)} {' '.join(events)} }}"


def initial_state(size: Size) -> tuple[tuple[Tree, Tree, Tree, jax.Array], jax.Array]:
    """Weights, both Adam moments and the step count, sharded; and one batch of random tokens."""
    shapes = weight_shapes(size)
    keys = jax.random.split(jax.random.key(0), len(shapes) + 1)
    weights = {
        name: jax.device_put(0.02 * jax.random.normal(key, shape), sharding(*axes))
        for key, (name, (shape, axes)) in zip(keys[1:], shapes.items(), strict=True)
    }
    tokens = jax.random.randint(keys[0], (size.batch, size.sequence), 0, size.vocab)
    zeros = [jax.tree.map(jnp.zeros_like, weights) for _ in range(2)]
    return (weights, *zeros, jnp.zeros(())), jax.device_put(tokens, sharding("data", "seq"))


def weight_shapes(size: Size) -> dict[str, tuple[tuple[int, ...], tuple[str | None, ...]]]:
    """Shape of each weight, and the mesh axis that shards each of its dimensions."""
    layers, width, groups, per_group = size.layers, size.d_model, size.kv_heads, size.heads // size.kv_heads
    return {
        "embedding": ((size.vocab, width), ("model", "data")),
        "attention_in": ((layers, width, groups, per_group + 2, HEAD_DIM), (None, "data", "model", None, None)),
        "attention_out": ((layers, groups, per_group, HEAD_DIM, width), (None, "model", None, None, "data")),
        "mlp_in": ((layers, width, 2, size.d_ff), (None, "data", None, "model")),
        "mlp_out": ((layers, size.d_ff, width), (None, "model", "data")),
    }


def sharding(*axes: str | None) -> NamedSharding:
    """A sharding on the current mesh."""
    return NamedSharding(jax.sharding.get_mesh(), PartitionSpec(*axes))


def constrain(array: jax.Array, *axes: str | None) -> jax.Array:
    """Pin the sharding of an intermediate."""
    return jax.lax.with_sharding_constraint(array, PartitionSpec(*axes))


@partial(jax.jit, donate_argnums=0)
def train_step(state: tuple[Tree, Tree, Tree, jax.Array], tokens: jax.Array) -> Any:
    """One step of Adam on the next-token loss."""
    weights, mean, variance, count = state
    gradients = jax.grad(loss)(weights, tokens)
    count += 1
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, mean, gradients)
    variance = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, variance, gradients)
    rate = LEARNING_RATE * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + EPSILON), weights, mean, variance)
    return weights, mean, variance, count


def loss(weights: Tree, tokens: jax.Array) -> jax.Array:
    """Mean cross-entropy of the next token."""
    layers = {name: stack for name, stack in weights.items() if name != "embedding"}
    table = constrain(weights["embedding"], None, None)
    stream = constrain(table[tokens], "data", "seq", None)
    stream, _ = jax.lax.scan(layer, stream, layers)
    logits = constrain(normalise(stream) @ weights["embedding"].T, "data", "seq", "model")
    target = jax.nn.one_hot(jnp.roll(tokens, -1, axis=1), logits.shape[-1])
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * target, axis=-1))


def layer(stream: jax.Array, weights: Tree) -> tuple[jax.Array, None]:
    """Attention with grouped queries, then a gated MLP; keys and values are gathered along the sequence."""
    projected = jnp.einsum("bsd,dgch->bsgch", normalise(stream), weights["attention_in"])
    queries, keys, values = projected[..., :-2, :], projected[..., -2, :], projected[..., -1, :]
    keys, values = (constrain(array, "data", None, "model", None) for array in (keys, values))
    scores = jnp.einsum("bsgqh,btgh->bgqst", queries, keys) * HEAD_DIM**-0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    attention = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf))
    mixed = jnp.einsum("bgqst,btgh->bsgqh", attention, values)
    stream += constrain(jnp.einsum("bsgqh,gqhd->bsd", mixed, weights["attention_out"]), "data", "seq", None)
    hidden = jnp.einsum("bsd,dcf->bscf", normalise(stream), weights["mlp_in"])
    hidden = jax.nn.silu(hidden[..., 0, :]) * hidden[..., 1, :]
    return stream + constrain(hidden @ weights["mlp_out"], "data", "seq", None), None


def normalise(stream: jax.Array) -> jax.Array:
    """RMS normalisation without a weight."""
    return stream * jax.lax.rsqrt(jnp.mean(stream * stream, axis=-1, keepdims=True) + 1e-6)


def facts(size: Size, mesh: tuple[int, ...]) -> dict[str, Any]:
    """What the experiment record says about this run."""
    return {
        "model": {
            **{name: getattr(size, name) for name in ("layers", "d_model", "d_ff", "heads", "kv_heads", "vocab")},
            "head_dim": HEAD_DIM,
            "gated_mlp": True,
            "tied_embeddings": True,
        },
        "workload": {
            "global_batch": size.batch,
            "sequence_length": size.sequence,
            "precision": "fp32",
            "optimizer": "adam",
            "attention": "dot_product",
            "framework": "JAX",
        },
        "plan": dict(zip(AXES, mesh, strict=True)),
        "devices": math.prod(mesh),
        "device_kind": jax.devices()[0].device_kind,
        "environment": {"jax": jax.__version__},
    }


if __name__ == "__main__":
    main()
