import pytest

from asap.compiler.schedule.hlo import Instruction, read_module
from asap.compiler.schedule.operation_cost import bytes_accessed, matmul_flops

STACK, LAYER, CHIP = "f32[8,4,16]{2,1,0}", "f32[1,4,16]{2,1,0}", "f32[4,16]{1,0:S(1)}"
INDEX = "  %i = s32[] parameter(1)\n  %z = s32[] constant(0)\n"


def moved(entry, *computations):
    """Bytes of the last instruction of a program, by memory."""
    head = "HloModule m, is_scheduled=true\n\n"
    called = "".join(f"%{name} (p: f32[8,4,16]) -> f32[8,4,16] {{\n{body}}}\n\n" for name, body in computations)
    module = read_module(f"{head}{called}ENTRY %main (p: f32[8,4,16]) -> f32[8,4,16] {{\n{entry}}}\n")
    return dict(bytes_accessed(module, module.entry.instructions[-1], module.entry))


def test_an_operation_reads_its_operands_and_writes_its_result():
    entry = f"  %a = {STACK} parameter(0)\n  ROOT %n = {STACK} negate(%a)\n"
    assert moved(entry) == {0: 2 * 8 * 4 * 16 * 4}


def test_memory_on_the_chip_is_counted_apart():
    entry = f"  %a = f32[4,16]{{1,0}} parameter(0)\n  ROOT %c = {CHIP} copy(%a)\n"
    assert moved(entry) == {0: 4 * 16 * 4, 1: 4 * 16 * 4}


@pytest.mark.parametrize("through", ["", "bitcast"])
def test_a_fusion_that_takes_a_slice_reads_the_slice(through):
    source = "a"
    body = f"  %a = {STACK} parameter(0)\n{INDEX}"
    if through:
        body += f"  %b = {STACK} bitcast(%a)\n"
        source = "b"
    body += f"  %d = {LAYER} dynamic-slice(%{source}, %i, %z, %z), dynamic_slice_sizes={{1,4,16}}\n"
    body += f"  ROOT %n = {LAYER} negate(%d)\n"
    entry = f"  %a.1 = {STACK} parameter(0)\n  %i.1 = s32[] parameter(1)\n"
    entry += f"  ROOT %f = {LAYER} fusion(%a.1, %i.1), kind=kLoop, calls=%inner\n"
    assert moved(entry, ("inner", body)) == {0: 2 * 4 * 16 * 4 + 4}


def test_a_fusion_that_puts_a_slice_into_an_array_writes_the_slice():
    body = f"  %a = {STACK} parameter(0)\n{INDEX}  %u = {LAYER} parameter(2)\n  %n = {LAYER} negate(%u)\n"
    body += f"  ROOT %d = {STACK} dynamic-update-slice(%a, %n, %i, %z, %z)\n"
    entry = f"  %a.1 = {STACK} parameter(0)\n  %i.1 = s32[] parameter(1)\n  %u.1 = {LAYER} parameter(2)\n"
    entry += f"  ROOT %f = {STACK} fusion(%a.1, %i.1, %u.1), kind=kLoop, calls=%inner\n"
    assert moved(entry, ("inner", body)) == {0: 2 * 4 * 16 * 4 + 4}


def test_a_fusion_in_a_fusion_reads_what_the_inner_one_does():
    inner = f"  %a = {STACK} parameter(0)\n{INDEX}"
    inner += f"  ROOT %d = {LAYER} dynamic-slice(%a, %i, %z, %z), dynamic_slice_sizes={{1,4,16}}\n"
    outer = f"  %a.2 = {STACK} parameter(0)\n  %i.2 = s32[] parameter(1)\n"
    outer += f"  %f.2 = {LAYER} fusion(%a.2, %i.2), kind=kLoop, calls=%inner\n"
    outer += f"  %n = {LAYER} negate(%f.2)\n  ROOT %t = ({LAYER}, {LAYER}) tuple(%n, %f.2)\n"
    entry = f"  %a.1 = {STACK} parameter(0)\n  %i.1 = s32[] parameter(1)\n"
    entry += f"  ROOT %f = ({LAYER}, {LAYER}) fusion(%a.1, %i.1), kind=kLoop, calls=%outer\n"
    assert moved(entry, ("inner", inner), ("outer", outer)) == {0: 3 * 4 * 16 * 4 + 4}


def test_what_one_user_takes_whole_is_read_whole():
    body = f"  %a = {STACK} parameter(0)\n{INDEX}"
    body += f"  %d = {LAYER} dynamic-slice(%a, %i, %z, %z), dynamic_slice_sizes={{1,4,16}}\n"
    body += f"  %n = {STACK} negate(%a)\n  ROOT %t = ({STACK}, {LAYER}) tuple(%n, %d)\n"
    entry = f"  %a.1 = {STACK} parameter(0)\n  %i.1 = s32[] parameter(1)\n"
    entry += f"  ROOT %f = ({STACK}, {LAYER}) fusion(%a.1, %i.1), kind=kLoop, calls=%inner\n"
    assert moved(entry, ("inner", body)) == {0: (2 * 8 + 1) * 4 * 16 * 4 + 4}


def test_of_an_array_that_is_padded_or_converted_first_only_the_slice_is_read():
    body = f"  %a = {STACK} parameter(0)\n{INDEX}  %c = bf16[8,4,16]{{2,1,0}} convert(%a)\n"
    body += "  %p = bf16[9,4,16]{2,1,0} pad(%c, %z), padding=0_1x0_0x0_0\n"
    body += "  ROOT %d = bf16[1,4,16]{2,1,0} dynamic-slice(%p, %i, %z, %z), dynamic_slice_sizes={1,4,16}\n"
    entry = f"  %a.1 = {STACK} parameter(0)\n  %i.1 = s32[] parameter(1)\n"
    entry += "  ROOT %f = bf16[1,4,16]{2,1,0} fusion(%a.1, %i.1), kind=kLoop, calls=%inner\n"
    assert moved(entry, ("inner", body)) == {0: 2 * 4 * 16 * 2 + 4}


def test_what_a_fusion_hands_through_and_what_a_collective_in_it_moves_are_not_its_own():
    body = f"  %a = {STACK} parameter(0)\n  %g = {STACK} parameter(1)\n  %u = {LAYER} parameter(2)\n"
    body += f"  %n = {STACK} negate(%a)\n  %r = {STACK} all-gather(%u), dimensions={{0}}\n"
    body += f"  ROOT %t = ({STACK}, {STACK}, {STACK}) tuple(%n, %g, %r)\n"
    entry = f"  %a.1 = {STACK} parameter(0)\n  %g.1 = {STACK} parameter(1)\n  %u.1 = {LAYER} parameter(2)\n"
    entry += f"  ROOT %f = ({STACK}, {STACK}, {STACK}) fusion(%a.1, %g.1, %u.1), kind=kCustom, calls=%inner\n"
    assert moved(entry, ("inner", body)) == {0: 2 * 8 * 4 * 16 * 4}


def test_a_program_moves_no_more_than_all_operands_and_results(program):
    for name in ("fsdp_scan_v5e_4x4", "tensor_v5e_4x4"):
        module = read_module(program(name))
        for computation in module.computations.values():
            for instruction in computation.instructions:
                read = [computation.by_name[n] for n in instruction.operands if n in computation.by_name]
                most = sum(shape.size for source in (instruction, *read) for shape in source.shapes)
                called = module.callee(instruction)
                if called is None or instruction.opcode == "fusion":
                    assert sum(bytes_accessed(module, instruction, computation).values()) <= most


LAYOUT = "{1,0}"


def module_of(kernel, attributes):
    return read_module(
        f"HloModule m, is_scheduled=true\n\n%inner (a: bf16[8,64], b: {kernel}) -> bf16[8,32] {{\n"
        f"  %a = bf16[8,64]{LAYOUT} parameter(0)\n  %b = {kernel}{LAYOUT} parameter(1)\n"
        f"  ROOT %c = bf16[8,32]{LAYOUT} convolution(%a, %b), {attributes}\n}}\n\n"
        f"%outer (a: bf16[8,64], b: {kernel}) -> bf16[8,32] {{\n"
        f"  %a.1 = bf16[8,64]{LAYOUT} parameter(0)\n  %b.1 = {kernel}{LAYOUT} parameter(1)\n"
        f"  ROOT %n = bf16[8,32]{LAYOUT} fusion(%a.1, %b.1), kind=kLoop, calls=%inner\n}}\n\n"
        f"ENTRY %main (p: bf16[8,64], q: {kernel}) -> bf16[8,32] {{\n"
        f"  %p = bf16[8,64]{LAYOUT} parameter(0)\n  %q = {kernel}{LAYOUT} parameter(1)\n"
        f"  ROOT %f = bf16[8,32]{LAYOUT} fusion(%p, %q), kind=kOutput, calls=%outer\n}}\n"
    )


@pytest.mark.parametrize(
    ("kernel", "attributes", "summed"),
    [
        ("bf16[64,32]", "dim_labels=bf_io->bf", 64),
        ("bf16[32,64]", "dim_labels=bf_oi->bf", 64),
        ("bf16[4,16,32]", "window={size=4}, dim_labels=0bf_0io->0bf", 4 * 16),
        ("bf16[4,64,32]", "window={size=4 pad=3_3 rhs_reversal=1}, dim_labels=0bf_0io->0bf", 64),
        ("bf16[8,4,16,32]", "window={size=8x4 pad=7_7x0_0 rhs_reversal=1x0}, dim_labels=01bf_01io->01bf", 4 * 16),
        ("bf16[8,64,32]", "window={size=8 stride=7 lhs_dilate=8}, dim_labels=0bf_0io->0bf", 64),
        ("bf16[4,2,64,32]", "window={size=4x2 lhs_dilate=1x2}, dim_labels=01bf_01io->01bf", 4 * 64),
    ],
)
def test_a_product_has_two_flops_for_each_element_of_its_result_and_of_what_that_sums(kernel, attributes, summed):
    module = module_of(kernel, attributes)
    inner = module.computations["inner"]
    assert matmul_flops(module, module.entry.by_name["f"], module.entry) == {"bf16": 2 * 8 * 32 * summed}
    assert matmul_flops(module, inner.by_name["c"], inner) == {"bf16": 2 * 8 * 32 * summed}


def test_integers_and_eight_bit_floats_are_counted_apart():
    for kernel, precision in (("s8[64,32]", "int8"), ("f8e4m3fn[64,32]", "fp8"), ("f32[64,32]", "bf16")):
        module = module_of(kernel, "dim_labels=bf_io->bf")
        assert set(matmul_flops(module, module.entry.by_name["f"], module.entry)) == {precision}


def test_what_has_no_product_has_no_flops(program):
    module = read_module(program("fsdp_scan_v5e_4x4"))
    assert not matmul_flops(module, Instruction("x", "copy", "bf16[8]", (), ""), module.entry)
    found = [
        matmul_flops(module, i, c)
        for c in module.computations.values()
        for i in c.instructions
        if "calls=" in i.attributes
    ]
    assert {sum(flops.values()) for flops in found if flops} == {2 * 512 * 2048 * 2048}
