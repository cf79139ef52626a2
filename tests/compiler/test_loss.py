"""The loss in parts holds the logits of one part, and nothing as large beside them."""

import json
import os
import subprocess
import sys

import pytest

from tests.cases import kept

pytestmark = pytest.mark.compiles

PROGRAM = kept(__file__)["PROGRAM"]


def test_no_part_of_the_loss_waits_for_all_parts():
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["largest"] <= found["head"]
