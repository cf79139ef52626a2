from itertools import pairwise

import pytest

from asap.core.feedback import Feedback, Repair
from asap.core.units import Provenance
from asap.hardware import resolve_hardware
from asap.mapping.algorithm import ALGORITHMS
from asap.mapping.check import check, mended
from asap.mapping.space import machine_space
from asap.optimize.outcome import Outcome, Try
from asap.optimize.proposers.mapping_rules import MappingRules
from mapping.loop import HELD_OUT, SEARCHES, measure
from mapping.table import Table, legal_space


@pytest.fixture(scope="module")
def table():
    return Table("pumma")


def _proposed(table, proposer, count):
    tries = []
    while len(tries) < count and (found := proposer.propose(tries)) is not None:
        outcome = table.outcome(found.configuration)
        tries.append(Try(number=len(tries) + 1, configuration=found.configuration, why=found.why, outcome=outcome))
    return tries


def test_what_is_wrong_is_repaired_next(table):
    start = "algorithm pumma\ngrid (2, 8)\norder row\nexchange permute\noverlap off\n"
    _, second = _proposed(table, MappingRules(table.space, start=start), 2)
    assert second.why == "repairs NEEDS_SQUARE"
    assert second.outcome.status == "done"


def test_a_decision_that_needs_another_takes_it_along():
    table = Table("solomonik")
    start = "algorithm solomonik\ngrid (2, 2, 4)\norder block(2, 1)\nexchange gather\n"
    proposer = MappingRules(
        table.space, start=start, allowed=table.legal, mended=lambda text: mended(text, table.hardware)
    )  # fmt: skip
    _, second = _proposed(table, proposer, 2)
    assert {"grid (1, 4, 4)", "exchange permute"} <= set(second.configuration.splitlines())


def test_an_order_is_mended_only_where_that_is_known_to_be_the_fastest():
    table = Table("cosma")
    tries = _proposed(table, MappingRules(table.space, start=table.textbook, allowed=table.legal), 30)
    mended = 0
    for number, (last, following) in enumerate(pairwise(tries), 1):
        best = min(each.outcome.step_time_s for each in tries[:number])
        known = [each.repaired_step_time_s for each in last.outcome.feedback if each.repaired_step_time_s is not None]
        if known and known[0] < best:
            mended += 1
            assert following.outcome.step_time_s == known[0]
        else:
            assert not following.why.startswith("write order")
    assert mended


@pytest.mark.parametrize(("seconds", "follows"), [(0.5, True), (1.5, False)])
def test_the_repair_of_a_good_program_is_tried_unless_it_is_known_to_be_slower_than_the_best(table, seconds, follows):
    best, good, last = (f"algorithm pumma\ngrid (4, 4)\norder {order}\n" for order in ("row", "col", "fold"))
    ring = Feedback(
        code="RING_LOST", explanation="far apart", suggestion="write order block(2, 2)",
        repair=Repair(text="order block(2, 2)", line=3, column=1, end_column=len("order col") + 1),
        repaired_step_time_s=seconds,
    )  # fmt: skip
    tries = [
        Try(number=number, configuration=text, why="", outcome=Outcome(
            status="done", step_time_s=step, provenance=Provenance.COMPILED, feedback=found))
        for number, (text, step, found) in enumerate([(best, 1.0, ()), (good, 2.0, (ring,)), (last, 3.0, ())], 1)
    ]  # fmt: skip
    following = MappingRules(table.space).propose(tries)
    assert (following.why == "RING_LOST: write order block(2, 2)") == follows


def test_nothing_is_tried_twice_and_a_seed_says_all(table):
    tries = _proposed(table, MappingRules(table.space, start=table.textbook, seed=3), 40)
    again = _proposed(table, MappingRules(table.space, start=table.textbook, seed=3), 40)
    assert [each.configuration for each in tries] == [each.configuration for each in again]
    assert len({frozenset(each.configuration.split("\n")) for each in tries}) == len(tries) == 40


@pytest.mark.slow
def test_feedback_reaches_the_optimum_where_none_does_not(table):
    suggest = measure(table, SEARCHES["rules, suggest"], False)
    assert suggest["to_1_percent_worst"] <= 10
    assert suggest["throughput_after_10_worst"] == 1.0
    assert measure(table, SEARCHES["random"], False)["missed"] > 0


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


def test_two_benchmarks_are_held_out():
    assert set(HELD_OUT) < set(ALGORITHMS)
