"""A small sample of scripts/fuzz: some mutations of the corpus break nothing."""

import pytest
from hypothesis import Phase, given, settings

from fuzzing.limits import limits
from fuzzing.mutation import SLOW_AND_LARGE
from fuzzing.targets import TARGETS

SAMPLED = (
    *("maxtext", "megatron", "plan", "mapping", "experiment", "history", "trace", "run-log"),
    *("event", "artifact", "policy"),
)
SAMPLE = settings(
    max_examples=15, derandomize=True, deadline=None, database=None, phases=(Phase.generate,),
    suppress_health_check=SLOW_AND_LARGE,
)  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    monkeypatch.setenv("ASAP_DEBUG", "1")


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_mutated_input_breaks_nothing(name):
    inputs, check = TARGETS[name].prepare()

    @SAMPLE
    @given(inputs)
    def attack(case):
        with limits():
            check(case)

    attack()
