"""Makes reference steps on eight virtual CPU devices: a line of JSON on standard input for each request.

A request names what is asked, the model and the plans: "losses" trains for two steps under each plan, "lowered" gives a
hash of its StableHLO. A plan may be followed by a semicolon and fields of the workload: ``data=2; loss_chunks=4``.
Instead of a plan, it may be a program of the mapping language; its state has to stay as the lines lay it. Shapes of
arrays are checked against their annotations.
"""

import hashlib
import json
import math
import sys
from functools import cache

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import install_import_hook

from asap.compiler.reference.expressible import program_lines
from asap.compiler.reference.layout import lines_text
from asap.mapping.language.parse import parse
from asap.mapping.plan_program import plan_of
from asap.models import Architecture, Workload
from asap.plans import AXES, Plan

ANNOTATED = ("attention", "decoder", "loss", "mixture_of_experts", "pipeline", "state", "train_step")
with install_import_hook([f"asap.compiler.reference.{name}" for name in ANNOTATED], "beartype.beartype"):
    from asap.compiler.reference.train_step import HOST, TrainStep, abstract_state, initial_state, reference_step

STEPS = 2


def made_step(model: Architecture, text: str) -> tuple[Plan, TrainStep]:
    words, _, settings = text.partition(";")
    program = parse(words)[0] if words.startswith("mesh") else None
    plan = plan_of(program) if program else Plan.parse(words)
    fields = dict(setting.split("=") for setting in settings.split())
    usual = {
        "global_batch": 16, "sequence_length": 32, "precision": "fp32", "capacity_factor": float(model.experts or 1),
    }  # fmt: skip
    workload = Workload.model_validate({**usual, **fields})
    mesh = Mesh(np.array(jax.devices()[: plan.devices]).reshape(plan.ici.degrees), AXES)
    lines = program_lines(lines_text(program), model, workload)
    return plan, reference_step(model, workload, plan, mesh, lines=lines)


@cache
def losses(model: Architecture, text: str) -> list[float]:
    plan, step = made_step(model, text)
    state = initial_state(step.decoder, plan)
    tokens = np.random.default_rng(0).integers(0, model.vocab or 1, (16, 33), dtype=np.int32)
    inputs = [jax.device_put(part, step.arguments[1].sharding) for part in (tokens[:, :-1], tokens[:, 1:])]
    found = []
    places = jax.tree.map(lambda each: each.sharding, step.arguments[0])
    for _ in range(STEPS):
        left, loss = step.function(state, *inputs)
        state = jax.device_put(left, places)  # else another program is compiled for the next step
        found.append(float(loss))
    if text.startswith("mesh"):
        assert all(map(_lies_as, jax.tree.leaves(left), jax.tree.leaves(step.arguments[0]))), text
    return found


def _lies_as(array: jax.Array, abstract: jax.ShapeDtypeStruct) -> bool:
    return array.sharding.is_equivalent_to(abstract.sharding, array.ndim)


def lowered(model: Architecture, text: str) -> str:
    _, step = made_step(model, text)
    return hashlib.sha256(step.function.lower(*step.arguments).as_text().encode()).hexdigest()


def kept(model: Architecture, text: str) -> list[int]:
    """Bytes of parameters and moments on the first device, and in memory of its host."""
    plan, step = made_step(model, text)
    state = abstract_state(step.decoder, plan)
    found = [0, 0]
    for leaf in jax.tree.leaves([state[name] for name in ("parameters", "mean", "variance")]):
        shape = leaf.sharding.shard_shape(leaf.shape)
        found[leaf.sharding.memory_kind == HOST] += math.prod(shape) * leaf.dtype.itemsize
    return found


ANSWERS = {"losses": losses, "lowered": lowered, "kept": kept}
for line in sys.stdin:
    asked, model, plans = json.loads(line)
    decoder = Architecture.model_validate(model)
    print(json.dumps({text: ANSWERS[asked](decoder, text) for text in plans}), flush=True)
