"""The order of a changed graph's nodes: whatever waits comes after what it waits for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import Run, simulate, write

from asap.core.errors import InsufficientEvidenceError
from asap.traces.graph.build import build_graph, ordered
from asap.traces.graph.graph import Cause, Edges
from asap.traces.recording import load_trace


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return build_graph(load_trace([write(tmp_path_factory.mktemp("run"), simulate(Run(steps=1)))]))


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.integers(0, 100))
def test_sources_come_first_whatever_waits_for_what(graph, random, count):
    place = random.sample(range(len(graph.measured)), len(graph.measured))
    pairs = [sorted(random.sample(range(len(place)), 2), key=place.__getitem__) for _ in range(count)]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    changed, rows = ordered(graph, Edges.of(source, target, np.arange(count), Cause.STREAM))
    edges = changed.edges
    assert (edges.source < edges.target).all()
    assert (np.diff(edges.target) >= 0).all()
    assert edges.weight.tolist() == rows.tolist()
    assert changed.measured[edges.source].tolist() == graph.measured[source[rows]].tolist()
    assert changed.measured[edges.target].tolist() == graph.measured[target[rows]].tolist()


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.integers(2, 20))
def test_who_waits_for_himself_is_refused(graph, random, length):
    circle = np.array(random.sample(range(len(graph.measured)), length))
    with pytest.raises(InsufficientEvidenceError, match="in a circle"):
        ordered(graph, Edges.of(circle, np.roll(circle, 1), 0, Cause.STREAM))
