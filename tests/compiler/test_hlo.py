import pytest

from asap.compiler.schedule.hlo import read_module, shapes, trip_count
from asap.core.errors import BadInputError
from tests.cases import cases, kept


def test_the_entry_keeps_the_order_of_the_schedule(program):
    module = read_module(program("tensor_v5e_4x4"))
    names = [i.name for i in module.entry.instructions if "collective" in i.opcode]
    assert names.index("collective-permute-start") < names.index("collective-permute-done")


def test_every_operand_of_a_computation_is_one_of_its_instructions(program):
    for name in ("fsdp_scan_v5e_4x4", "tensor_v5e_4x4"):
        for computation in read_module(program(name)).computations.values():
            for instruction in computation.instructions:
                if instruction.opcode not in ("constant", "parameter"):
                    assert set(instruction.operands) <= set(computation.by_name), instruction.name


def test_an_instruction_broken_over_lines_is_read_whole(program):
    (kernel,) = [i for i in read_module(program("splash_kernel_v5e")).entry.instructions if i.opcode == "custom-call"]
    assert kernel.attribute("custom_call_target") == "tpu_custom_call"
    assert kernel.attribute("op_name").endswith("pallas_call")


def test_shapes_know_their_bytes_and_their_memory():
    large, small, flag = shapes("(bf16[8,2048,512]{2,1,0:T(8,128)(2,1)S(1)}, s4[16]{0}, pred[3])")
    assert (large.size, large.space) == (8 * 2048 * 512 * 2, 1)
    assert (small.size, small.space) == (8, 0)
    assert flag.size == 3


@pytest.mark.parametrize("text", ["", "not HLO", "HloModule jit_f\n", "HloModule m, is_scheduled=true\n"])
def test_what_is_no_scheduled_program_is_refused(text):
    with pytest.raises(BadInputError):
        read_module(text)


LOOP = kept(__file__)["LOOP"]


def passes(*, start=0, end=8, growth=1, operation="add", direction="LT", noted=""):
    text = LOOP.format(start=start, end=end, growth=growth, operation=operation, direction=direction, noted=noted)
    module = read_module(text)
    return trip_count(module, module.entry.by_name["loop"])


def test_loops_of_a_compiled_program_run_as_often_as_there_are_layers(program):
    module = read_module(program("fsdp_scan_v5e_4x4"))
    loops = [i for c in module.computations.values() for i in c.instructions if i.opcode == "while"]
    assert [trip_count(module, loop) for loop in loops] == [6, 6]


@cases("counter, expected")
def test_the_counter_says_how_often(counter, expected):
    assert passes(**counter) == expected


def test_what_the_compiler_notes_is_believed():
    assert passes(noted=', backend_config={"known_trip_count":{"n":"9"}}') == 9


@pytest.mark.parametrize("counter", [{"growth": 0}, {"operation": "multiply"}, {"direction": "NE"}])
def test_a_counter_that_cannot_be_read_says_nothing(counter):
    assert passes(**counter) is None
