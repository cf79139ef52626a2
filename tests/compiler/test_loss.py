"""The loss in parts holds the logits of one part, and nothing as large beside them."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.compiles

PROGRAM = """
import json
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from asap.compiler.reference.layout import logical_mesh
from asap.compiler.reference.loss import cross_entropy
from asap.plans import AXES

BATCH, SEQUENCE, WIDTH, VOCABULARY, PARTS = 2, 64, 8, 1024, 4
layout = logical_mesh(Mesh(np.array(jax.devices()[:1]).reshape((1,) * len(AXES)), AXES))
targets = jnp.zeros((BATCH, SEQUENCE), jnp.int32)
loss = lambda x, head: cross_entropy(layout, x, head, targets, PARTS)
shapes = (jnp.zeros((BATCH, SEQUENCE, WIDTH)), jnp.zeros((WIDTH, VOCABULARY)))
jaxpr = jax.make_jaxpr(jax.grad(loss, (0, 1)))(*shapes)
constants = [
    int(np.prod(variable.aval.shape))
    for equation in jaxpr.eqns if equation.primitive.name == "scan"
    for variable in equation.invars[: equation.params["num_consts"]]
]
print(json.dumps({"largest": max(constants), "head": WIDTH * VOCABULARY}))
"""


def test_no_part_of_the_loss_waits_for_all_parts():
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["largest"] <= found["head"]
