import pytest
from simulate import simulate

from asap.compiler.schedule.hlo import Instruction, read_module
from asap.compiler.schedule.interconnect import device_rates
from asap.compiler.schedule.operation_cost import attention_kernel_seconds
from asap.hardware import load_chip
from asap.plans.replica_groups import NamedMesh

HEAD = "HloModule m, is_scheduled=true\n\nENTRY %main (p: bf16[1024,1024]) -> bf16[1024,1024] {\n"
PARAMETER = "  %p = bf16[1024,1024]{1,0} parameter(0)\n"
PAIRS = "source_target_pairs={{0,4},{4,8},{8,12},{12,0}}"
START = f"  %s = (bf16[1024,1024]{{1,0}}, bf16[1024,1024]{{1,0}}, u32[], u32[]) collective-permute-start(%p), {PAIRS}\n"
DONE = "  ROOT %d = bf16[1024,1024]{1,0} collective-permute-done(%s)\n}\n"


def busy(name, size):
    """An operation that writes so many bytes to HBM and reads none."""
    return f"  %{name} = u8[{size}]{{0}} iota(), iota_dimension=0\n"


def writing(size, chip="v5e"):
    return device_rates(load_chip(chip)).memory_seconds({0: size})


def test_a_scan_counts_its_collectives_once_a_layer(program):
    timeline = simulate(program("fsdp_scan_v5e_4x4"))
    gathers = timeline.collectives["all-gather", "data+model", "synchronous"]
    sums = timeline.collectives["all-reduce", "data+model", "synchronous"]
    weights = 2048 * 2048 * 2
    assert (gathers.count, gathers.size) == (12, 12 * weights)
    assert (sums.count, sums.size) == (6, 6 * weights)


def test_the_matrix_products_cost_at_least_their_flops_at_peak(program):
    timeline = simulate(program("fsdp_scan_v5e_4x4"))
    products = 2 * 512 * 2048 * 2048 * 6 * 4
    peak = load_chip("v5e").peak_flops["bf16"]
    assert products / peak <= timeline.operations["matmuls"].seconds <= 2 * products / peak


def test_the_step_is_compute_and_what_is_exposed(program):
    for name in ("fsdp_scan_v5e_4x4", "tensor_v5e_4x4"):
        timeline = simulate(program(name))
        parts = sum(work.seconds for work in timeline.operations.values())
        parts += sum(use.exposed for use in timeline.collectives.values())
        assert timeline.seconds == pytest.approx(parts)


def test_a_started_transfer_hides_behind_what_runs_until_it_is_needed():
    long = simulate(HEAD + PARAMETER + START + busy("f", 10**9) + DONE)
    short = simulate(HEAD + PARAMETER + START + busy("f", 10**6) + DONE)
    key = ("collective-permute", "data", "asynchronous")
    assert long.collectives[key].exposed == 0
    assert short.collectives[key].exposed == pytest.approx(long.collectives[key].busy - writing(10**6))


@pytest.mark.parametrize("pairs", ["{}", "{{0,0},{4,4}}"])
def test_a_permute_that_sends_nothing_takes_no_time(pairs):
    timeline = simulate(HEAD + PARAMETER + START.replace(PAIRS, f"source_target_pairs={pairs}") + DONE)
    assert timeline.seconds == 0
    assert not timeline.collectives


def test_two_transfers_on_one_torus_axis_follow_each_other():
    second = START.replace("%s =", "%t =")
    done = "  %e = bf16[1024,1024]{1,0} collective-permute-done(%t)\n"
    one, two = simulate(HEAD + PARAMETER + START + DONE), simulate(HEAD + PARAMETER + START + second + done + DONE)
    assert two.seconds == pytest.approx(2 * one.seconds)


def test_transfers_in_opposite_directions_of_a_torus_axis_run_side_by_side():
    done = "  %e = bf16[1024,1024]{1,0} collective-permute-done(%t)\n"
    ring = {"name": "v5e-256", "mesh": NamedMesh(("data", "model"), (16, 16))}
    around = "source_target_pairs={" + ",".join(f"{{{16 * i},{16 * ((i + 1) % 16)}}}" for i in range(16)) + "}"
    forward = START.replace(PAIRS, around)
    reverse = "source_target_pairs={" + ",".join(f"{{{16 * ((i + 1) % 16)},{16 * i}}}" for i in range(16)) + "}"
    back = START.replace("%s =", "%t =").replace(PAIRS, reverse)
    one = simulate(HEAD + PARAMETER + forward + DONE, **ring)
    both = simulate(HEAD + PARAMETER + forward + back + done + DONE, **ring)
    assert both.seconds == pytest.approx(one.seconds)


def test_what_goes_to_host_memory_is_hidden_unless_it_takes_longer_than_the_step():
    host = "bf16[1024,1024]{1,0:S(5)}"
    there = f"  %out = ({host}, bf16[1024,1024]{{1,0}}, u32[]) copy-start(%p)\n"
    back = f"  %in = (bf16[1024,1024]{{1,0}}, {host}, u32[]) copy-start(%p)\n"
    done = "  %x = bf16[1024,1024]{1,0} copy-done(%out)\n  %y = bf16[1024,1024]{1,0} copy-done(%in)\n}\n"
    one_way = 1024 * 1024 * 2 / load_chip("v6e").host_bandwidth
    long, short = (simulate(HEAD + PARAMETER + there + back + busy("f", n) + done, "v6e-16") for n in (10**9, 10))
    assert long.seconds == pytest.approx(writing(10**9, "v6e"))
    assert short.seconds == pytest.approx(one_way)
    assert long.host_seconds == pytest.approx({"to": one_way, "from": one_way})
    unknown = simulate(HEAD + PARAMETER + there + back + busy("f", 10) + done, "v4-32", NamedMesh(("data",), (16,)))
    assert any("not published" in note for note in unknown.notes) == (load_chip("v4").host_bandwidth is None)


def test_a_kernel_that_is_not_known_costs_its_bytes_and_is_counted():
    kernel = '  %k = bf16[1024,1024]{1,0} custom-call(%p), custom_call_target="tpu_custom_call"\n'
    work = simulate(HEAD + PARAMETER + kernel + "}\n").operations["kernels"]
    assert work.unestimated == 1
    assert work.seconds == pytest.approx(writing(2 * 1024 * 1024 * 2))


def test_an_operation_takes_its_products_or_its_bytes_whichever_is_more(program):
    text = program("fsdp_scan_v5e_4x4")
    chip = device_rates(load_chip("v5e"))
    assert simulate(text).operations["matmuls"].seconds == pytest.approx(
        chip.matmul_seconds({"bf16": 2 * 512 * 2048 * 2048 * 6 * 4})
    )
    few = chip.matmul_seconds({"bf16": 1e6})
    assert few < chip.memory_seconds({0: 1e6}) < chip.matmul_seconds({"bf16": 1e12})
    assert chip.matmul_seconds({"int8": 1e12}) == pytest.approx(chip.matmul_seconds({"bf16": 1e12}) / 2, rel=0.01)


def test_a_loop_of_unknown_length_is_counted_once_and_said(program):
    text = program("fsdp_scan_v5e_4x4").replace("direction=LT", "direction=NE")
    timeline = simulate(text)
    assert timeline.collectives["all-reduce", "data+model", "synchronous"].count == 1
    assert any("counted once" in note for note in timeline.notes)


def test_groups_that_cannot_be_read_are_said(program):
    timeline = simulate(program("fsdp_scan_v5e_4x4").replace("replica_groups=", "groups_of_old="))
    assert any("cannot be read" in note for note in timeline.notes)


def test_the_attention_kernel_costs_the_causal_half_of_its_products_at_the_share_of_the_peak_it_reaches(program):
    seconds = simulate(program("splash_kernel_v5e")).operations["kernels"].seconds
    blocks = 2048 // 512
    flops = 2 * 2 * 8 * 4 * 2048 * 2048 * 128 * (blocks + 1) / (2 * blocks)
    assert seconds == pytest.approx(flops / (0.81 * load_chip("v5e").peak_flops["bf16"]))


def test_where_the_softmax_is_slower_than_the_products_it_decides(program):
    module = read_module(program("splash_kernel_v5e"))
    (kernel,) = [i for i in module.entry.instructions if i.opcode == "custom-call"]
    scores = 8 * 4 * 2048 * 2048 * 5 / 8
    measured = 9.41e-3 / (3 * 32 * 8192 * 8192 * 5 / 8)
    assert attention_kernel_seconds(kernel, device_rates(load_chip("v6e"))) == pytest.approx(
        scores * measured, rel=0.01
    )


def test_a_fused_backward_kernel_has_a_product_more():
    array, scratch = "bf16[2,8,2048,128]", "f32[2,512,128]"
    layouts = f"operand_layout_constraints={{{', '.join([array + '{3,2,1,0}'] * 3)}}}"

    def seconds(*gradients):
        result = f"({', '.join([scratch, scratch, *gradients])})"
        kernel = Instruction("splash_mha_dkv_no_residuals.1", "custom-call", result, (), layouts)
        return attention_kernel_seconds(kernel, device_rates(load_chip("v6e")))

    assert seconds("bf16[2,4,8,2048,128]", array, array) == pytest.approx(5 / 4 * seconds(array, array))


@pytest.mark.parametrize(("chip", "clock"), [("v5e", 1.5e9), ("v5p", 1.75e9), ("v6e", 1.75e9), ("v4", 1.05e9)])
def test_clocks_are_those_that_peak_flops_imply(chip, clock):
    assert device_rates(load_chip(chip)).clock == pytest.approx(clock, rel=0.01)


def test_a_chip_of_two_devices_is_halved():
    chip = load_chip("tpu7x")
    assert device_rates(chip).peak_flops == chip.peak_flops["bf16"] / 2
    assert device_rates(chip).hbm_bytes == chip.device_capacity == chip.program_hbm_bytes / 2
