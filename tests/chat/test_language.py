"""The exact language: what each line asks, and that each command is written as the line that is read as it."""

import pytest

from asap.chat.language import LONGEST, Command, parse
from asap.chat.verbs import USAGE, about
from asap.chat.written import written
from asap.core.errors import UsageError

LINES = {
    "why": ("explain", {}),
    "why not model=8": ("explain", {"plan": "model=8"}),
    "Why not TP=8?": ("explain", {"plan": "TP=8"}),
    "compare 1 2": ("compare", {"plans": ("1", "2")}),
    "compare data=8 vs data=4 model=2": ("compare", {"plans": ("data=8", "data=4 model=2")}),
    "what if batch=512 seq=16k": ("what_if", {"global_batch": 512, "sequence_length": 16384}),
    "what if seq=4 data=4": ("what_if", {"plan": "seq=4 data=4"}),
    "what if 1 chips=64": ("what_if", {"plan": "1", "chips": 64}),
    "what if v6e-64": ("what_if", {"hardware": "v6e-64"}),
    "sweep remat": ("sweep", {"vary": "remat"}),
    "sweep batch 128 256 512": ("sweep", {"vary": "global_batch", "values": ("128", "256", "512")}),
    "sweep microbatches=1,2,4": ("sweep", {"vary": "microbatches", "values": ("1", "2", "4")}),
    "sweep tp 1 2": ("sweep", {"vary": "model", "values": ("1", "2")}),
    "memory 1": ("memory", {"plan": "1"}),
    "predict --tensor-model-parallel-size 8": ("predict", {"plan": "--tensor-model-parallel-size=8"}),
    "predict ici_fsdp_parallelism=8 ici_tensor_parallelism=2": (
        "predict", {"plan": "ici_fsdp_parallelism=8 ici_tensor_parallelism=2"},
    ),
    "operations": ("operations", {}),
    "operation 3": ("operation", {"name": "3"}),
    "operation all-reduce.82": ("operation", {"name": "all-reduce.82"}),
    "line 1": ("line", {"plan": "1"}),
    "line 1 --command": ("line", {"plan": "1", "command": True}),
    "line 1 megatron": ("line", {"plan": "1", "stack": "megatron"}),
    "solve batch": ("solve", {"find": "batch"}),
    "solve mfu 45% for 1": ("solve", {"find": "mfu", "target": 0.45, "plan": "1"}),
    "worth 1 --price 2.1": ("worth", {"plan": "1", "price": 2.1}),
    "plausible 38s": ("plausible", {"metric": "step_time", "value": 38}),
    "plausible 0.45 mfu": ("plausible", {"metric": "mfu", "value": 0.45}),
    "ran 1 = 4.1s": ("record", {"what": "step_time", "plan": "1", "value": 4.1, "unit": "s"}),
    "ran data=8 model=2 = 9% slower": (
        "record", {"what": "relative", "plan": "data=8 model=2", "value": 9, "unit": "% slower"},
    ),
    "ran now = 38% mfu": ("record", {"what": "mfu", "plan": "now", "value": 38, "unit": "%"}),
    "ran now = 91% hbm": ("record", {"what": "hbm_share", "plan": "now", "value": 91, "unit": "%"}),
    "ran 1 = 14.2 GiB": ("record", {"what": "hbm_bytes", "plan": "1", "value": 14.2, "unit": "GiB"}),
    "oom 2": ("record", {"what": "out_of_memory", "plan": "2"}),
    "runs batch=512": ("record", {"what": "batch", "value": 512}),
    "runs network=8x400Gb": ("record", {"what": "network", "about": "8x400Gb"}),
    "runs 2": ("record", {"what": "incumbent", "plan": "2"}),
    "runs data=8 model=2": ("record", {"what": "incumbent", "plan": "data=8 model=2"}),
    "limit model<=8": ("record", {"what": "constraint", "about": "model", "bound": "most", "value": 8}),
    "limit batch": ("record", {"what": "constraint", "about": "batch"}),
    "forget 1": ("retract", {"number": 1}),
    "notes ring attention": ("notes", {"words": "ring attention"}),
    "define MFU?": ("define", {"term": "MFU"}),
    "next": ("next_test", {}),
    "? why": ("help", {"verb": "why"}),
    "exit": ("quit", {}),
}  # fmt: skip
PROSE = (
    "memory of proposal 2", "why is it so slow", "it ran 1 = 4s", "fits 1?", "proposal 1 ran out of memory", "ran 1",
    "did it run 1 = 4.1s", "what if we doubled the batch", "limit", "oom", "hello", "", "limit yourself to 8 chips",
)  # fmt: skip


@pytest.mark.parametrize(("line", "asked"), LINES.items())
def test_a_line_is_a_query_with_its_arguments(line, asked):
    command = parse(line)
    assert command is not None
    assert (command.name, dict(command.arguments)) == asked


@pytest.mark.parametrize("line", LINES)
def test_a_command_is_written_as_a_line_that_is_read_as_it(line):
    command = parse(line)
    assert command is not None
    assert parse(written(command)) == command


@pytest.mark.parametrize("line", PROSE)
def test_prose_is_no_command(line):
    assert parse(line) is None


@pytest.mark.parametrize(("line", "says"), [("ran 1 = 9%", "% of what"), ("what if batch=2x", "needs a number")])
def test_what_a_figure_is_of_has_to_be_said(line, says):
    with pytest.raises(UsageError, match=says):
        parse(line)


def test_every_verb_says_what_it_does():
    assert all(len(about(verb)) > 10 for verb in USAGE)


@pytest.mark.parametrize(
    "line", ["what if " + "a=1 " * 240, "compare " + "1 " * 400, "x" * (LONGEST + 1), "\x1b[2J\u202e"]
)
def test_hostile_lines_are_read_or_refused(line):
    assert parse(line) is None or isinstance(parse(line), Command)
