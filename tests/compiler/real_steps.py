"""Runs real training steps on eight virtual CPU devices; prints the losses of each plan as JSON.

A plan may be followed by a semicolon and fields of the workload: ``data=2; loss_chunks=4``. Instead of a plan, it may
be a program of the mapping language. Shapes of arrays are checked against their annotations.
"""

import json
import sys

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import install_import_hook

from asap.compiler.reference.program_lines import lines_text
from asap.compiler.reference.target import program_lines
from asap.mapping.language.parse import parse
from asap.mapping.plan_program import plan_of
from asap.models import Architecture, Workload
from asap.plans import AXES, Plan

ANNOTATED = ("attention", "decoder", "loss", "mixture_of_experts", "pipeline", "state", "train_step")
with install_import_hook([f"asap.compiler.reference.{name}" for name in ANNOTATED], "beartype.beartype"):
    from asap.compiler.reference.state import initial_state
    from asap.compiler.reference.train_step import reference_step

STEPS = 2


def losses(model: Architecture, text: str) -> list[float]:
    words, _, settings = text.partition(";")
    program = parse(words)[0] if words.startswith("mesh") else None
    plan = plan_of(program) if program else Plan.parse(words)
    fields = dict(setting.split("=") for setting in settings.split())
    workload = Workload.model_validate({"global_batch": 16, "sequence_length": 32, "precision": "fp32", **fields})
    shape = plan.ici.degrees
    devices = np.array(jax.devices()[: plan.devices]).reshape(shape)
    mesh = Mesh(devices, AXES)
    lines = program_lines(lines_text(program), model, workload)
    capacity = float(model.experts or 1)
    step = reference_step(model, workload, plan, mesh, capacity_factor=capacity, lines=lines)
    state = initial_state(step.decoder, plan)
    tokens = np.random.default_rng(0).integers(0, model.vocab or 1, (16, 33), dtype=np.int32)
    inputs = [jax.device_put(part, step.arguments[1].sharding) for part in (tokens[:, :-1], tokens[:, 1:])]
    found = []
    for _ in range(STEPS):
        state, loss = step.function(state, *inputs)
        found.append(float(loss))
    return found


model = Architecture.model_validate_json(sys.argv[1])
print(json.dumps({text: losses(model, text) for text in sys.argv[2:]}))
