from asap.compiler.schedule.hlo import Instruction, read_module
from asap.compiler.schedule.operation_cost import bytes_accessed, matmul_flops
from tests.cases import cases


@cases("what, moved, text")
def test_what_the_last_operation_moves(what, moved, text):
    module = read_module(f"HloModule m, is_scheduled=true\n\n{text}")
    assert dict(bytes_accessed(module, module.entry.instructions[-1], module.entry)) == moved, what


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


@cases("kernel, attributes, summed")
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
