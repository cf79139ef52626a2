"""torchtitan's configurations in Python: read without running them, and proposals as their statements."""

import pytest

from asap.core.errors import PlanError
from asap.optimize.evaluators.run.command import words
from asap.proposals.proposal import Overrides
from tests.experiments.stack_configurations import read

__all__ = ["read"]


def test_statements_are_flags_except_for_what_is_recomputed():
    statements = "config.training.steps = 5\nconfig.a.b = True\nconfig.a.c = False"
    assert words(Overrides(torchtitan=statements)) == "--training.steps=5 --a.b --a.no_c"
    assert words(Overrides(torchtitan="[training]\nenable_cpu_offload = false")) == "--training.no_enable_cpu_offload"
    with pytest.raises(PlanError, match="which no flag says"):
        words(Overrides(torchtitan="config.activation_checkpoint = None"))
