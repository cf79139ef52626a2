"""A training run that can be started anywhere: the reference step on eight virtual CPU devices.

    asap experiments add small --config scripts/optimization/decoder.yml --hardware v5e-8
    asap optimize small --evaluate run --command 'python scripts/optimization/train_on_cpu.py {overrides}' --budget 8

It takes MaxText's overrides and logs as MaxText does.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax.sharding import Mesh

from asap.compiler.reference.train_step import initial_state, reference_step
from asap.experiments import Experiment
from asap.experiments.create import Statement, create_experiment
from asap.plans import AXES, Plan
from asap.plans.degrees import workload_under

CONFIGURATION = Path(__file__).with_name("decoder.yml")
HARDWARE = "v5e-8"


def experiment(overrides: list[str]) -> Experiment:
    """The small decoder under MaxText's overrides."""
    return create_experiment("small", Statement(hardware=HARDWARE), config=CONFIGURATION, overrides=overrides)


def timed_steps(of: Experiment, plan: Plan) -> Iterator[tuple[float, float]]:
    """Seconds and loss of one step after the other."""
    assert of.model is not None
    mesh = Mesh(np.array(jax.devices()).reshape([plan.degree(axis) for axis in AXES]), AXES)
    step = reference_step(of.model, workload_under(plan, of.workload), plan, mesh)
    state = initial_state(step.decoder, plan)
    shape, sharding = step.arguments[1].shape, step.arguments[1].sharding
    generator, vocabulary = np.random.default_rng(0), of.model.vocab or 2
    tokens, targets = (jax.device_put(generator.integers(0, vocabulary, shape, dtype=np.int32), sharding) for _ in "ab")
    compiled = step.function.lower(state, tokens, targets).compile()
    while True:
        began = time.perf_counter()
        state, loss = compiled(state, tokens, targets)
        value = float(loss)
        yield time.perf_counter() - began, value
        state = jax.tree.map(lambda leaf, wanted: jax.device_put(leaf, wanted.sharding), state, step.arguments[0])


def main() -> None:
    for word in sys.argv[1:]:
        key, _, value = word.partition("=")
        print(f"Config param {key}: {value}", flush=True)
    of = experiment(sys.argv[1:])
    assert of.plan is not None
    for number, (seconds, loss) in enumerate(timed_steps(of, of.plan)):
        print(f"completed step: {number}, seconds: {seconds:.4f}, loss: {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
