"""The grammar of changes, and what it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import Run, simulate, unexplained, write

from asap.core.errors import AsapError, UsageError
from asap.traces.graph.build import build_graph
from asap.traces.recording import load_trace
from asap.traces.what_if.change import GRAMMAR, Action, Change, collectives, parse_change
from asap.traces.what_if.predict import predict_change
from tests.cases import cases


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return build_graph(load_trace([write(tmp_path_factory.mktemp("run"), simulate(Run(steps=5)))]))


@cases("text, change")
def test_changes_are_read(text, change):
    assert parse_change(text) == Change(Action(change[0]), *change[1:])


@cases("text, message")
def test_what_is_no_change_is_named(text, message):
    with pytest.raises(UsageError, match=message):
        parse_change(text)


@given(st.text(max_size=40))
def test_any_text_is_a_change_or_one_line(text):
    try:
        change = parse_change(text)
    except UsageError as refused:
        assert len(str(refused).splitlines()) == 1  # noqa: PT017
    else:
        assert parse_change(str(change)) == change


def test_every_change_is_in_the_grammar():
    for word in (*Action, *collectives(), "host", "dataloader", "name~"):
        assert word in GRAMMAR


def test_no_change_changes_nothing(graph):
    found = predict_change(graph, [parse_change("scale:compute=1"), parse_change("scale:host=1")])
    assert found.value == pytest.approx(found.measured, rel=1e-3)
    assert found.low <= found.measured <= found.high


def test_shares_say_what_was_scaled(graph):
    traced, scaled = (predict_change(graph, [parse_change(f"scale:matmul={factor}")]) for factor in (1e-9, 50))
    assert traced.scaled < 0.05
    assert scaled.scaled > 0.9
    for found in (traced, scaled):
        assert found.traced + found.scaled == pytest.approx(1)


@given(st.floats(0, 20), st.sampled_from(["host", "compute", "communication", "copy", "dataloader"]))
def test_more_time_never_makes_a_step_shorter(graph, factor, what):
    less, more = (predict_change(graph, [Change(Action.SCALE, what, f)]).value for f in (factor, factor + 0.5))
    assert less <= more * (1 + 1e-6)


def test_a_graph_that_explains_little_is_refused(tmp_path):
    graph = build_graph(load_trace([write(tmp_path, unexplained())]))
    with pytest.raises(AsapError, match="unexplained"):
        predict_change(graph, [parse_change("remove:compute")])
