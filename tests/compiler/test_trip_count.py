import pytest

from asap.compiler.schedule.hlo import read_module, trip_count

LOOP = """HloModule m, is_scheduled=true

%condition (p: (f32[8], u32[])) -> pred[] {{
  %p.1 = (f32[8]{{0}}, u32[]) parameter(0)
  %end = u32[] constant({end}), metadata={{op_name="while"}}
  %now = u32[] get-tuple-element(%p.1), index=1
  ROOT %less = pred[] compare(%now, %end), direction={direction}
}}

%body (p: (f32[8], u32[])) -> (f32[8], u32[]) {{
  %p.2 = (f32[8]{{0}}, u32[]) parameter(0)
  %x = f32[8]{{0}} get-tuple-element(%p.2), index=0
  %i = u32[] get-tuple-element(%p.2), index=1
  %step = u32[] constant({growth})
  %more = u32[] copy(%step)
  %next = u32[] {operation}(%i, %more)
  ROOT %out = (f32[8]{{0}}, u32[]) tuple(%x, %next)
}}

ENTRY %main (x: f32[8]) -> f32[8] {{
  %x.1 = f32[8]{{0}} parameter(0)
  %first = u32[] constant({start})
  %first.copy = u32[] copy(%first)
  %in = (f32[8]{{0}}, u32[]) tuple(%x.1, %first.copy)
  %loop = (f32[8]{{0}}, u32[]) while(%in), condition=%condition, body=%body{noted}
  ROOT %y = f32[8]{{0}} get-tuple-element(%loop), index=0
}}
"""


def passes(*, start=0, end=8, growth=1, operation="add", direction="LT", noted=""):
    text = LOOP.format(start=start, end=end, growth=growth, operation=operation, direction=direction, noted=noted)
    module = read_module(text)
    return trip_count(module, module.entry.by_name["loop"])


def test_loops_of_a_compiled_program_run_as_often_as_there_are_layers(program):
    module = read_module(program("fsdp_scan_v5e_4x4"))
    loops = [i for c in module.computations.values() for i in c.instructions if i.opcode == "while"]
    assert [trip_count(module, loop) for loop in loops] == [6, 6]


@pytest.mark.parametrize(
    ("counter", "expected"),
    [
        ({}, 8),
        ({"growth": 2}, 4),
        ({"growth": 3}, 3),
        ({"start": 1}, 7),
        ({"start": 1, "growth": 2}, 4),
        ({"start": 8}, 0),
    ],
)
def test_the_counter_says_how_often(counter, expected):
    assert passes(**counter) == expected


def test_what_the_compiler_notes_is_believed():
    assert passes(noted=', backend_config={"known_trip_count":{"n":"9"}}') == 9


@pytest.mark.parametrize("counter", [{"growth": 0}, {"operation": "multiply"}, {"direction": "NE"}])
def test_a_counter_that_cannot_be_read_says_nothing(counter):
    assert passes(**counter) is None
