import json
import shlex
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import PlanError, UsageError
from asap.core.units import Provenance
from asap.optimize.ideas import WithIdeas, add_idea, tried_ideas
from asap.optimize.outcome import Outcome, Suggestion, Try
from asap.proposals.proposal import Overrides
from asap.proposals.typed_change import add_typed_change, read_typed
from tests.cases import cases, listed
from tests.optimize.test_optimization_sessions import arguments

PIECES = st.sampled_from(
    ["--a", "b=", "c", ";", "$(x)", "`", "'", '"', "xla_tpu_a=1", "X_Y=--z=1", "|", ">", "\n", "=", "&&", "*"]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=6).map(" ".join))
def test_what_is_taken_means_nothing_to_a_shell(text):
    with suppress(UsageError):
        typed = read_typed(text)
        assert shlex.split(typed) == typed.split()
        assert not set(typed) & set(";|&$`<>()*?!#~\\\"'\n")


@pytest.mark.parametrize("text", ["a fused Pallas kernel", "", "key", "a=b rm", "x=1;reboot"])
def test_a_change_of_the_code_is_no_idea_that_is_typed(text):
    with pytest.raises(UsageError):
        read_typed(text)


@cases("stack, idea, text, exports")
def test_an_idea_stands_where_its_launcher_looks_for_it(stack, idea, text, exports):
    found = add_typed_change(Overrides(stack=stack, text="plan"), read_typed(idea))
    assert listed((found.text, found.exports)) == [text, exports]


def test_a_launcher_that_takes_a_file_says_so():
    with pytest.raises(PlanError, match="takes a file"):
        add_typed_change(Overrides(stack="torchtitan", text="[a]\nb = 1"), "c=2")


class _Others:
    def propose(self, tries):
        return Suggestion(configuration="data=8", why="", saving=0.2) if len(tries) < 3 else None


def _try(number, configuration, seconds):
    done = Outcome(status="done", step_time_s=seconds, standard_error_s=0.001, steps=20, provenance=Provenance.MEASURED)
    return Try(number=number, configuration=configuration, why="", outcome=done)


@pytest.mark.parametrize(("budget", "expected"), [(None, "data=8"), (3, "data=4 with a=1"), (2, "data=4 with a=1")])
def test_ideas_are_tried_on_the_best_plan_before_the_budget_ends(budget, expected):
    found = WithIdeas(_Others(), ["a=1", "b=2"], budget).propose([_try(1, "data=4", 1.0)])
    assert found.configuration == expected


def test_an_idea_is_tried_once_and_judged_against_the_same_plan_without_it():
    tries = [_try(n, "data=4", 1.0 + n / 1000) for n in (1, 2, 3)]
    tries += [_try(4, add_idea("data=4", "a=1"), 0.5), _try(5, add_idea("data=4", "b=2"), 1.001)]
    assert WithIdeas(_Others(), ["a=1", "b=2"], 9).propose(tries) is None
    assert [one.verdict for one in tried_ideas(tries)] == ["faster", "undecided"]


@pytest.mark.process
@pytest.mark.slow
def test_an_idea_becomes_a_record_and_is_counted(run_command):
    run_command(*arguments(budget="6"), "--idea", "num_vocab_tiling=4")
    tries = json.loads(run_command("optimize", "show", "s", "--format", "json").out)["tries"]
    assert tries[-1]["configuration"].endswith(" with num_vocab_tiling=4")
    (idea,) = json.loads(run_command("accuracy", "ledger", "--format", "json").out)["ideas"]
    assert idea["ratio"] == pytest.approx(0.8, abs=0.01)
    recorded = run_command("optimize", "record", "s").out
    assert ("-idea-1: improved" in recorded) is (idea["verdict"] == "faster")
