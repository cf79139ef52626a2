"""A small sample of scripts/measure fuzz: some mutations of the corpus break nothing."""

from contextlib import suppress

import pytest
from hypothesis import Phase, given, settings

from asap.core.errors import AsapError
from fuzzing import scaling
from fuzzing.case import SLOW_AND_LARGE, limits
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


def test_every_reader_whose_growth_is_measured_reads_a_line_or_refuses_it(tmp_path):
    for read in scaling.readers(tmp_path).values():
        with suppress(AsapError, ValueError):
            read("a: 1\n")
