"""Lowers training steps for eight virtual CPU devices; prints a hash of the StableHLO of each plan or program."""

import hashlib
import json
import sys

import jax
import numpy as np
from jax.sharding import Mesh

from asap.compiler.reference.program_lines import lines_text
from asap.compiler.reference.target import program_lines
from asap.compiler.reference.train_step import reference_step
from asap.mapping.language.parse import parse
from asap.mapping.plan_program import plan_of, plan_program
from asap.models import Architecture, Workload
from asap.plans import AXES, Plan

WORKLOAD = Workload(global_batch=16, sequence_length=32)


def lowered(model: Architecture, text: str) -> str:
    program = parse(text)[0] if text.startswith("mesh") else plan_program(Plan.parse(text))
    plan = plan_of(program)
    mesh = Mesh(np.array(jax.devices()[: plan.devices]).reshape(plan.ici.degrees), AXES)
    lines = program_lines(lines_text(program), model, WORKLOAD)
    step = reference_step(model, WORKLOAD, plan, mesh, lines=lines)
    return hashlib.sha256(step.function.lower(*step.arguments).as_text().encode()).hexdigest()


model = Architecture.model_validate_json(sys.argv[1])
print(json.dumps({text: lowered(model, text) for text in sys.argv[2:]}))
