import random

import numpy as np
import pytest

from asap.compiler.traced.predict_algorithm import AlgorithmPredictor
from asap.core.errors import InsufficientEvidenceError
from asap.hardware import resolve_hardware
from asap.mapping.algorithm import ALGORITHMS
from asap.mapping.check import check
from asap.mapping.space import machine_space
from asap.optimize.by_mapping import in_brief, line_of_program
from asap.optimize.outcome import Try
from asap.optimize.proposers.mapping_prior import KERNEL, PredictedMappings, mapping_prior, programs_apart
from asap.optimize.proposers.model_guided import ModelGuided
from mapping.loop import SEARCHES, measure
from mapping.table import Table, legal_space

_FEW = 5


@pytest.fixture(scope="module")
def table():
    return Table("pumma")


def proposer(table, start):
    def wrong(text):
        return check(text, None, table.hardware).feedback

    return PredictedMappings(table.space, ModelGuided(table.prior, KERNEL), start, wrong)


def tried(table, text):
    return Try(number=1, configuration=text, why="", outcome=table.outcome(text))


def tried_in_turn(table, start, count):
    tries, proposes = [], proposer(table, start)
    for number in range(1, count + 1):
        found = proposes.propose(tries)
        outcome = table.outcome(found.configuration)
        tries.append(Try(number=number, outcome=outcome, **found.model_dump(exclude={"saving"})))
    return tries


@pytest.mark.parametrize("name", ALGORITHMS)
def test_programs_that_pass_the_checks_are_predicted(name):
    draw, found = random.Random(), Table(name)
    predictor = AlgorithmPredictor(found.hardware)
    for text in draw.sample(found.programs, min(_FEW, len(found.programs))):
        assert predictor.seconds(text) > 0, text


def test_the_first_is_the_users_own_and_the_next_the_fastest_predicted(table):
    start = table.programs[-1]
    first = proposer(table, start).propose(())
    assert (first.configuration, first.why) == (start, "the program to begin with")
    assert first.predicted.step_time_s == pytest.approx(float(np.exp(table.prior.log_time[-1])))
    second = proposer(table, start).propose([tried(table, start)])
    assert second.configuration == table.prior.configurations[int(np.argmin(table.prior.log_time))]
    assert second.why.startswith("expected to take")


def test_a_wrong_program_is_repaired_before_anything_predicted_is_tried(table):
    start = "algorithm pumma\ngrid (2, 8)\norder row\nexchange permute\noverlap off\n"
    following = proposer(table, start).propose([tried(table, start)])
    assert following.why == "repairs NEEDS_SQUARE"
    assert following.predicted.step_time_s is not None
    assert table.legal(following.configuration)


def test_a_repair_that_needs_another_takes_it_along():
    table = Table("solomonik")
    start = "algorithm solomonik\ngrid (2, 2, 4)\norder block(2, 1)\nexchange gather\n"
    following = proposer(table, start).propose([tried(table, start)])
    assert {"grid (1, 4, 4)", "exchange permute"} <= set(following.configuration.splitlines())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_tables_hold_every_legal_program(name):
    found = Table(name)
    assert set(found.programs) == {space.text(chosen) for space, chosen in legal_space(name, found.hardware)}
    assert found.legal(found.textbook)
    assert {"libtpu", "problem", "machine"} <= set(found.made_by)


def test_a_machine_has_options_that_the_checks_pass():
    hardware = resolve_hardware("v5e:8x8").slice
    for name in ALGORITHMS:
        for order in machine_space(name, hardware).options["order"]:
            assert check(f"algorithm {name}\norder {order}", None, hardware).feedback == ()


def test_a_program_counts_as_tried_however_it_is_written(table):
    best = table.prior.configurations[int(np.argmin(table.prior.log_time))]
    backwards = "\n".join(reversed(best.splitlines()))
    assert proposer(table, backwards).propose([tried(table, backwards)]).configuration != best


def test_what_cannot_be_predicted_is_left_out(table):
    def predict(text):
        if "permute" in text:
            raise InsufficientEvidenceError("a branch")
        return 1.0

    programs = [{"grid": "(4, 4)", "order": "row", "exchange": way, "overlap": "on"} for way in ("permute", "gather")]
    assert mapping_prior(table.space, programs, predict).configurations == (table.space.text(programs[1]),)
    with pytest.raises(InsufficientEvidenceError):
        mapping_prior(table.space, programs[:1], predict)


def test_programs_are_apart_by_doublings_and_words():
    programs = [
        {"grid": "(4, 4)", "order": "row", "panels": "1", "exchange": "gather"},
        {"grid": "(2, 8)", "order": "row", "panels": "4", "exchange": "permute"},
        {"grid": "(4, 4)", "order": "col", "panels": "1", "exchange": "gather"},
    ]
    assert programs_apart(programs, other_order=0.25)(0).T.tolist() == [[0] * 5, [1, 1, 0, 2, 1], [0, 0, 0.25, 0, 0]]


@pytest.mark.parametrize(("legal", "most"), [(False, 3), (True, 2)])
def test_the_optimum_of_a_product_is_found_at_once(table, legal, most):
    found = measure(table, SEARCHES["predicted"], legal)
    assert found["to_1_percent_worst"] <= most
    assert found["throughput_after_10_worst"] == 1.0
    assert measure(table, SEARCHES["random"], legal)["missed" if not legal else "to_1_percent_worst"] > most


def test_a_table_says_what_each_program_changes_and_what_was_predicted(table):
    tries = tried_in_turn(table, table.textbook, 2)
    first, second = in_brief(tries)
    assert first.configuration == "algorithm pumma; grid (4, 4); order row; exchange permute; overlap on"
    assert second.configuration == "exchange gather"
    assert [len(each.outcome.feedback) for each in (first, second)] == [1, 1]
    assert line_of_program(tries[1], tries[0]) == "2. 1.10 ms modelled, 931 µs predicted: exchange gather"
