"""Words of a model against figures of the engine: false ones do not pass as grounded, true ones are not marked."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.grounding.verdict import check, rendered
from asap.answers.figure import Figure
from asap.answers.inquiries import Inquiries
from asap.core.errors import NotFoundError, UsageError
from asap.core.units import Provenance
from asap.reports.phrases import written
from swapped_truths.statements import case_of, half_of, statements
from tests.cases import cases

MOST_PASSED, MOST_MARKED = 0.01, 0.03
UNSEEN = ("beyond", "threads")
"""Styles that the list of words was not made for: most of their true statements are marked (docs/trust.md)."""


@pytest.fixture(scope="module")
def case(home):
    return case_of(Inquiries().of("paper-v6e-16"))


def test_swapped_truths_are_told_from_true_statements(case):
    judged = [(one, check(one.text, case.catalogue)[-1]) for one in statements(case, seed=7)]
    passed = [one.text for one, said in judged if said.grounded and not one.true]
    true = [(one, said) for one, said in judged if one.true and half_of(one.kind) not in UNSEEN]
    near = [(one, said) for one, said in true if half_of(one.kind) != "far"]
    marked = [one.text for one, said in near if not said.grounded]
    denied = [one.text for one, said in true if not (said.grounded or said.holds)]
    assert len(passed) <= MOST_PASSED * sum(not one.true for one, _ in judged), passed
    assert len(marked) <= MOST_MARKED * len(near), marked
    assert len(denied) <= MOST_PASSED * len(true), denied


@cases("text")
def test_what_rests_on_nothing_is_the_models_own(case, text):
    assert not any(one.grounded for one in check(text, case.catalogue))


@cases("text")
def test_figures_that_are_typed_of_their_plan_are_no_faults(case, text):
    known = {name: written(getattr(case.rows[0], name), brief=True) for name in ("faster_odds", "communication")}
    said = text.format(**known, now=written(case.now.communication, brief=True))
    assert not check(said, case.catalogue)[0].faults


def test_no_model_sets_the_marks(case):
    assert rendered(check("° ~ It is the best.", case.catalogue)) == "~ It is the best."


def test_code_prints_value_interval_and_provenance(case):
    (found,) = check("Proposal 1 needs {1.step_time}.", case.catalogue)
    assert found.grounded
    assert f"{case.rows[0].step_time.value:.2f} s" in found.text
    assert "[modelled]" in found.text


def test_a_figure_that_is_said_of_no_plan_names_its_own(case):
    (found,) = check("A step would take {2.step_time}.", case.catalogue)
    assert (found.grounded, case.rows[1].plan in found.text) == (True, True)


def test_what_the_engineer_said_may_be_repeated_and_reckoned_with():
    catalogue = Catalogue(figures={"now.step_time": _seconds("now.step_time", 4.0)})
    catalogue.hear("saving a checkpoint takes 400 ms every 20 steps")
    (found,) = check("That is {400 * ms / ( 20 * now.step_time )} of the step.", catalogue)
    assert (found.grounded, "0.5 %" in found.text) == (True, True)
    assert check("You said 400 ms.", catalogue)[0].grounded


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4))
def test_derived_figures_carry_units_and_the_weakest_provenance(one, two):
    catalogue = Catalogue(figures={"now.a": _seconds("now.a", one), "1.b": _seconds("1.b", two, Provenance.MODELLED)})
    difference, ratio = catalogue.compute("now.a - 1.b"), catalogue.compute("now.a / 1.b")
    assert (difference.value, difference.unit) == (pytest.approx(one - two), "s")
    assert (ratio.value, ratio.unit) == (pytest.approx(one / two), "fraction")
    assert difference.provenance is Provenance.MODELLED


@given(st.text("now.step_time+-*/() 1234567890msGiB", max_size=60))
def test_an_expression_has_a_figure_or_one_clear_error(text):
    catalogue = Catalogue(figures={"now.step_time": _seconds("now.step_time", 4.0)})
    with suppress(UsageError, NotFoundError):
        assert isinstance(catalogue.compute(text), Figure)


@given(st.text(max_size=200))
def test_any_text_is_shown_whole(text):
    found = check(text, Catalogue())
    assert all(not one.grounded for one in found)
    assert len(rendered(found)) >= len("".join(one.text for one in found))


def _seconds(identity: str, value: float, kind: Provenance = Provenance.MEASURED) -> Figure:
    return Figure(id=identity, value=value, unit="s", provenance=kind, source="a test")
