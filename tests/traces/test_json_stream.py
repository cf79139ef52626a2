"""Chrome-format JSON in slices."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asap.traces.readers import json_stream
from asap.traces.recording import load_trace


def nested(depth):
    return st.recursive(
        st.integers() | st.text(max_size=12) | st.just('}, {"ph": "X"'),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
        max_leaves=depth,
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"ph": st.just("X"), "name": st.text(max_size=8), "extra": nested(12)}), max_size=40
    ),
    st.integers(16, 400),
)
def test_slices_lose_nothing(tmp_path_factory, events, size):
    file = tmp_path_factory.mktemp("slices") / "trace.json"
    file.write_text(
        json.dumps({"before": [{"a": "traceEvents"}], "traceEvents": events, "after": [{}, {}]}), encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "SLICE", size)
        stream = json_stream.EventStream(file, dict)
        found = [event for part, _ in stream.slices() for event in part]
    blank = {ord(c): " " for c in map(chr, range(32))}
    assert json.dumps(found) == json.dumps(events).translate(blank)
    assert stream.fields == {"before": [{"a": "traceEvents"}], "after": [{}, {}]}


def test_a_file_of_any_size_is_read_in_slices(tmp_path, events, monkeypatch):
    monkeypatch.setattr(json_stream, "SLICE", 1 << 16)
    filler = b'{"ph":"X","cat":"python_function","name":"f","pid":1,"tid":2,"ts":5,"dur":1},'
    file = tmp_path / "long.json"
    with file.open("wb") as out:
        out.write(b'{"traceEvents":[')
        for _ in range(40):
            out.write(filler * 4_000)
        out.write(json.dumps(events).encode()[1:] + b"}")
    tracemalloc.start()
    try:
        trace = load_trace([file])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(trace.ranks[0].operations) == sum(event["cat"] in ("kernel", "gpu_memcpy") for event in events)
    assert peak < file.stat().st_size / 4
