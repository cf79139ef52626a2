"""Events that nobody reads are left out before decoding; whatever the layout, the rest reads the same."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asap.core.errors import BadInputError
from asap.traces.readers import json_stream, kineto
from asap.traces.readers.json_stream import UnusedEvents
from asap.traces.recording import load_trace


def as_kineto(events):
    """As libkineto/src/output_json.cpp writes them."""
    return ",".join("\n  {\n" + json.dumps(event, indent=4)[2:-2] + "\n  }" for event in events)


LAYOUTS = {
    "kineto": lambda events: '{"traceEvents": [' + as_kineto(events) + "\n]}",
    "default": lambda events: json.dumps({"traceEvents": events}),
    "compact": lambda events: json.dumps({"traceEvents": events}, separators=(",", ":")),
    "indented": lambda events: json.dumps({"traceEvents": events}, indent=2),
    "utf-8": lambda events: json.dumps({"traceEvents": events}, ensure_ascii=False),
    "sorted keys": lambda events: json.dumps({"traceEvents": events}, sort_keys=True), "list": json.dumps,
}  # fmt: skip
NAMES = st.sampled_from(["aten::add", "ProfilerStep#1", "}, {", '{"ph": "X", "cat": "', "gemm", "\\", ""]) | st.text(
    max_size=6
)
CATEGORIES = st.sampled_from(["cpu_op", "python_function", "kernel", "cuda_runtime", "ac2g", "overhead", "new"])
VALUES = st.lists(NAMES | st.dictionaries(NAMES, NAMES, max_size=2), max_size=3)
TIMES = st.integers(0, 10**6)
FIELDS = {"ph": st.sampled_from("XXXXsfiM"), "cat": CATEGORIES, "name": NAMES, "ts": TIMES, "dur": TIMES}
ARGUMENTS = {"args": st.dictionaries(NAMES.map("of {}".format), VALUES)}
EVENTS = st.lists(st.fixed_dictionaries(FIELDS, optional=ARGUMENTS), max_size=20)
KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2, "args": {"stream": 7, "correlation": 1}}
UNUSED = {"ph": "X", "cat": "python_function", "name": "train.py(3): step", "ts": 1, "dur": 2, "args": {"Python id": 1}}


@settings(max_examples=40, deadline=None)
@given(EVENTS, st.sampled_from(sorted(LAYOUTS)), st.integers(40, 4000))
def test_the_columns_are_those_of_all_events(tmp_path_factory, events, layout, size):
    file = tmp_path_factory.mktemp("layouts") / "rank0.json"
    file.write_text(LAYOUTS[layout]([*events, KERNEL]), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "SLICE", size)
        fast = columns(file)
        patch.setattr(kineto, "_UNUSED", ())
        assert fast == columns(file)


def columns(file):
    (rank,) = load_trace([file]).ranks
    tables = [vars(events).values() for events in (rank.calls, rank.operations, rank.spans)]
    return rank.names, rank.lanes, rank.notes, rank.steps, [column.tolist() for table in tables for column in table]


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"sorted keys", "list"}))
def test_unused_events_are_not_decoded(layout):
    text = LAYOUTS[layout]([KERNEL] + [UNUSED, UNUSED | {"ph": "f"}, KERNEL] * 50).encode()
    text = text[text.index(b"[") + 1 : text.rindex(b"]")]
    unused = UnusedEvents.of(text, kineto._UNUSED)
    used, count = unused.left_out(text, len(text))
    assert json.loads(b"[%b]" % used) == [KERNEL] * 51
    assert count == 100


@pytest.mark.parametrize("name", ["aten::}", "aten::{", "aten::|~é"])
def test_a_brace_in_a_name_loses_no_event(read, name, monkeypatch):
    monkeypatch.setattr(json_stream, "SLICE", 4_096)
    odd = {"ph": "X", "cat": "cpu_op", "name": name, "ts": 1, "dur": 2}
    trace = read(LAYOUTS["kineto"]([UNUSED, odd, KERNEL, odd, KERNEL] * 100))
    assert len(trace.ranks[0].operations) == 200


def test_a_file_with_a_hole_of_zeros_is_refused(read, monkeypatch):
    monkeypatch.setattr(json_stream, "SLICE", 4_096)
    text = LAYOUTS["kineto"]([KERNEL, *[UNUSED] * 400]).encode()
    with pytest.raises(BadInputError, match="damaged"):
        read(text[:20_000] + bytes(4_096) + text[24_096:])
