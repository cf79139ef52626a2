"""How often the cause of a planted fault is named first or second: recorded steps of known truth, three sizes each.

    python scripts/planted_faults.py            Kineto, made by scripts/planted_steps.py
    python scripts/planted_faults.py --jax      JAX on four virtual devices of this machine's CPU, some minutes

Half of the kinds, those whose name has an odd MD5, were put away before the catalogue was written.
"""

import argparse
import gc
import hashlib
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import planted_steps
from asap.core.errors import AsapError
from asap.diagnosis import diagnose
from asap.hardware import load_chip
from asap.traces.analysis.report import ReplayReport
from asap.traces.recording import read_graph, read_recording
from asap.traces.summary import report_replay

DEVICES, STEPS, STEP_S = 4, 4, 0.06
SHARES = (0.15, 0.35, 0.7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jax", action="store_true", help="JAX on the CPU instead of Kineto")
    hits: dict[bool, list[bool]] = {True: [], False: []}
    for name, folder in jax_faults() if parser.parse_args().jax else kineto_faults():
        found = diagnose(read_recording(folder), chip=load_chip("h100"), replay=replay(folder))
        causes = [cause.name for cause in found.causes]
        held = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(), 16) % 2 == 1
        hits[held].append(name.partition(":")[0] in causes[:2])
        if not hits[held][-1]:
            print(f"{name}: named {', '.join(causes[:4]) or 'nothing'}")
    for held, found in hits.items():
        print(f"{'put away' if held else 'tuned on'}: {sum(found)} of {len(found)} named first or second")


def replay(folder: Path) -> ReplayReport | None:
    """Of what was recorded, if it can be replayed."""
    try:
        return report_replay(read_graph(folder))
    except AsapError:
        return None


def kineto_faults() -> Iterator[tuple[str, Path]]:
    """Each fault in each size."""
    for name, fault in planted_steps.FAULTS.items():
        for share in planted_steps.SIZES:
            with tempfile.TemporaryDirectory() as folder:
                planted_steps.record(fault, share, Path(folder))
                yield name, Path(folder)


def jax_faults() -> Iterator[tuple[str, Path]]:
    """Steps of a product on each device, with something beside or in them."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    import jax

    jax.config.update("jax_platforms", "cpu")
    for name, make in JAX_FAULTS.items():
        for share in SHARES:
            with tempfile.TemporaryDirectory() as folder:
                step = make(STEP_S * share / (1 - share))
                step(0)
                with jax.profiler.trace(folder):
                    for number in range(1, STEPS + 1):
                        with jax.profiler.StepTraceAnnotation("train", step_num=number):
                            step(number)
                yield name, Path(folder)


Step = Callable[[int], None]


def _with(beside: Callable[[int], object]) -> Step:
    """A step of products that takes about ``STEP_S``, and something beside it."""
    import jax
    import jax.numpy as jnp

    square = jnp.ones((512, 512))
    multiply = jax.jit(lambda x: jax.lax.fori_loop(0, _products(), lambda _, y: y @ x / 512, x))

    def step(number: int) -> None:
        beside(number)
        multiply(square).block_until_ready()

    return step


def _products() -> int:
    started = time.perf_counter()
    one = np.ones((512, 512), np.float32)
    for _ in range(5):
        one = one @ one / 512
    return max(int(STEP_S / (time.perf_counter() - started) * 5), 1)


def _compiles(seconds: float) -> Step:
    import jax
    import jax.numpy as jnp

    depth = max(int(seconds / 0.004), 2)

    def deep(x: object) -> object:
        for _ in range(depth):
            x = jnp.sin(x) @ jnp.ones((8, 8))  # pyright: ignore[reportArgumentType]
        return x

    return _with(lambda number: jax.jit(deep)(jnp.ones((number + 1, 8))).block_until_ready())


def _calls_back(seconds: float) -> Step:
    import jax
    import jax.numpy as jnp

    def slow(x: np.ndarray) -> np.ndarray:
        time.sleep(seconds)
        return x

    call = jax.jit(lambda x: jax.pure_callback(slow, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
    return _with(lambda number: call(jnp.ones(8)).block_until_ready())


def _loads(seconds: float) -> Step:
    def next_batch() -> None:
        time.sleep(seconds)

    return _with(lambda number: next_batch())


def _saves(seconds: float) -> Step:
    def save_checkpoint() -> None:
        until = time.perf_counter() + seconds
        with tempfile.TemporaryFile() as file:
            while time.perf_counter() < until:
                np.save(file, np.ones(1 << 20))

    return _with(lambda number: save_checkpoint())


def _collects(seconds: float) -> Step:
    kept = [[[]] for _ in range(int(seconds * 8e6))]

    def collect(number: int) -> None:
        assert kept
        gc.collect()

    return _with(collect)


def _logs(seconds: float) -> Step:
    def write_metrics() -> None:
        time.sleep(seconds)

    return _with(lambda number: write_metrics())


def _evaluates(seconds: float) -> Step:
    def evaluate() -> None:
        time.sleep(seconds)

    return _with(lambda number: evaluate())


def _communicates(kind: str) -> Callable[[float], Step]:
    def make(seconds: float) -> Step:
        import jax
        import jax.numpy as jnp
        from jax.sharding import Mesh, PartitionSpec

        mesh = Mesh(np.array(jax.devices()), ("d",))
        calls = {
            "psum": lambda x: jax.lax.psum(x, "d"),
            "all_gather": lambda x: jax.lax.all_gather(x, "d").sum(0),
            "all_to_all": lambda x: jax.lax.all_to_all(x, "d", 0, 0, tiled=True),
            "psum_scatter": lambda x: jnp.tile(jax.lax.psum_scatter(x, "d", tiled=True), DEVICES),
        }
        many = max(int(seconds / 0.004), 1)
        spec = PartitionSpec("d")
        body = jax.shard_map(calls[kind], mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        repeated = jax.jit(lambda x: jax.lax.fori_loop(0, many, lambda _, y: body(y) / 4, x))
        return _with(lambda number: repeated(jnp.ones(DEVICES << 20)).block_until_ready())

    return make


def _of_each_shard(body: Callable[[object], object], each_s: float) -> Callable[[float], Step]:
    """Something that every device does again and again, by itself or with the others."""

    def make(seconds: float) -> Step:
        import jax
        import jax.numpy as jnp
        from jax.sharding import Mesh, PartitionSpec

        mesh, spec = Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d")
        shard = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        many = max(int(seconds / each_s), 1)
        repeated = jax.jit(lambda x: jax.lax.fori_loop(0, many, lambda _, y: shard(y), x))
        return _with(lambda number: repeated(jnp.ones((DEVICES, 1 << 20))).block_until_ready())

    return make


def _permutes(x: object) -> object:
    import jax

    return jax.lax.ppermute(x, "d", [(each, (each + 1) % DEVICES) for each in range(DEVICES)])


def _sorts(x: object) -> object:
    import jax.numpy as jnp

    return jnp.sort(jnp.sin(x * 1e4), axis=-1)  # pyright: ignore[reportOperatorIssue]


def _reduces_scalars(x: object) -> object:
    import jax

    return x + jax.lax.psum(x[0, 0], "d") * 1e-9  # pyright: ignore[reportIndexIssue, reportOperatorIssue]


def _recompiles_for_a_static_argument(seconds: float) -> Step:
    import jax
    import jax.numpy as jnp

    depth = max(int(seconds / 0.004), 2)

    def scaled(x: object, by: int) -> object:
        for _ in range(depth):
            x = jnp.cos(x * by) @ jnp.ones((8, 8))  # pyright: ignore[reportOperatorIssue, reportArgumentType]
        return x

    call = jax.jit(scaled, static_argnums=1)
    return _with(lambda number: call(jnp.ones((8, 8)), number).block_until_ready())


def _debugs(seconds: float) -> Step:
    import jax
    import jax.numpy as jnp

    def report(value: np.ndarray) -> None:
        time.sleep(seconds)

    def step(x: object) -> object:
        jax.debug.callback(report, x[0], ordered=True)  # pyright: ignore[reportIndexIssue]
        return x

    call = jax.jit(step)

    def both(number: int) -> None:
        call(jnp.ones(8)).block_until_ready()
        jax.effects_barrier()

    return _with(both)


def _iterates(seconds: float) -> Step:
    class DataLoader:
        def __next__(self) -> None:
            time.sleep(seconds)

    loader = DataLoader()
    return _with(lambda number: loader.__next__())


def _pickles(seconds: float) -> Step:
    def save_state() -> None:
        until = time.perf_counter() + seconds
        with tempfile.TemporaryFile() as file:
            while time.perf_counter() < until:
                pickle.dump(np.ones(1 << 20), file)

    return _with(lambda number: save_state())


def _runs_evaluation(seconds: float) -> Step:
    def run_eval() -> None:
        time.sleep(seconds)

    return _with(lambda number: run_eval())


def _reads_losses(seconds: float) -> Step:
    import jax
    import jax.numpy as jnp

    small = jax.jit(lambda x: jnp.sum(x) * 2)
    many = max(int(seconds / 0.0002), 2)

    def read(number: int) -> None:
        for each in range(many):
            float(small(jnp.full(8, float(each))))

    return _with(read)


def _formats(seconds: float) -> Step:
    def format_metrics() -> str:
        until, text = time.perf_counter() + seconds, ""
        while time.perf_counter() < until:
            text = ", ".join(f"{each:.3f}" for each in range(100))
        return text

    return _with(lambda number: format_metrics())


JAX_FAULTS: dict[str, Callable[[float], Step]] = {
    "compilation: a static argument": _recompiles_for_a_static_argument,
    "callback: debug.callback": _debugs,
    "slow_loader: an iterator": _iterates,
    "checkpoint: pickle": _pickles,
    "evaluation: run_eval": _runs_evaluation,
    "synchronisation: losses one by one": _reads_losses,
    "python: text of metrics": _formats,
    "exposed_ring_permutes: ppermute": _of_each_shard(_permutes, 0.002),
    "indexing: sort": _of_each_shard(_sorts, 0.05),
    "small_collectives: scalars": _of_each_shard(_reduces_scalars, 0.0005),
    "compilation": _compiles,
    "callback": _calls_back,
    "slow_loader": _loads,
    "checkpoint": _saves,
    "garbage_collection": _collects,
    "python": _logs,
    "evaluation": _evaluates,
    "exposed_gradient_or_tensor_reductions": _communicates("psum"),
    "exposed_parameter_gathers": _communicates("all_gather"),
    "exposed_expert_exchange": _communicates("all_to_all"),
    "exposed_gradient_scatters": _communicates("psum_scatter"),
}


if __name__ == "__main__":
    main()
