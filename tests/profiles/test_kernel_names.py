"""Names of kernels from the sources of some twenty libraries, each labelled by hand."""

import csv
from pathlib import Path

import pytest
from xspaces import TRAINING, Op, plane, serialised, tpu_profile

from asap.profiles import collectives, read_profile
from asap.profiles.totals import totals_of
from asap.profiles.xplane.planes import read_planes
from tests.cases import cases

NAMES = Path(__file__).resolve().parents[1] / "data" / "kernels" / "kernel_names.tsv"
LEAST = 0.95


def _label(name: str) -> str:
    work = collectives.work_of_kernel(name)
    return work.collective or ("collective" if work.work == "communication" else work.work)


def test_kernels_of_today_are_known_by_their_names():
    with NAMES.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    wrong = [row["name"] for row in rows if _label(row["name"]) != row["label"]]
    assert len(wrong) <= (1 - LEAST) * len(rows), wrong


def test_a_name_that_nobody_knows_is_unknown():
    assert collectives.work_of_kernel("kernel_7(float*)").work == "other"


@cases("stated, kind")
def test_what_pytorch_states_names_the_collective(stated, kind):
    assert collectives.stated_collective(stated) == kind


@cases("name, category, expression, kind, waits")
def test_collectives_are_recognised(name, category, expression, kind, waits):
    assert collectives.collective_of(name, category, expression) == (kind, waits)


@cases("name, kind")
def test_kernels_of_nccl_and_rccl(name, kind):
    assert collectives.work_of_kernel(name).collective == kind


def test_parts_of_an_instruction():
    copy = "%c.4 = (f32[5,8]{1,0:T(8,128)S(5)}, u32[]{:S(2)}) copy-start(f32[5,8]{1,0:T(8,128)} %a), cross_program=1"
    assert collectives.result_shape(copy) == "(f32[5,8]{1,0:T(8,128)S(5)}, u32[]{:S(2)})"
    assert (collectives.opcode(copy), collectives.opcode("")) == ("copy-start", "")
    assert collectives.base_name("%all-gather.5.remat") == "all-gather"
    assert collectives.result_shape("no instruction") is None


HOST, DEVICE = "f32[8]{0:T(256)S(5)}", "f32[8]{0:T(256)}"


@cases("category, expression, copies")
def test_copies_with_host_memory(category, expression, copies):
    assert collectives.is_host_copy(category, expression) is copies


def test_input_is_not_a_copy():
    assert collectives.is_input("infeed")
    assert collectives.is_input("sparsecorev0 infeed wait")
    assert not collectives.is_input("host send")


def test_a_copy_with_the_host_counts_against_the_link_and_not_against_hbm(write):
    copy = Op("copy-done.1", "copy-done", 500, 0, 2**24, f"{DEVICE} copy-done(({DEVICE}, {HOST}, u32[]) %copy-start.1)")
    operation = read_profile(write(tpu_profile([copy, TRAINING[0]]))).operations[0]
    assert (operation.name, operation.host_copy, operation.bound) == ("copy-done.1", True, "host")
    assert operation.memory_bandwidth == pytest.approx(2**24 / 500e-6)
    assert (operation.memory_utilisation, operation.roofline_efficiency) == (None, None)


def test_on_a_gpu_only_the_part_counts_beside_which_no_kernel_ran(write):
    gpu = plane("/device:GPU:0")
    kernels = [gpu.event("gemm", start, 100) for start in (0, 200)]
    gpu.line(1, "Stream #1(Compute)", kernels)
    gpu.line(2, "Stream #2(MemcpyH2D)", [gpu.event("MemcpyH2D", 50, 100), gpu.event("MemcpyH2D", 210, 20)])
    gpu.line(3, "Stream #3(MemcpyD2H)", [gpu.event("MemcpyD2H", 300, 30)])
    copies = totals_of(read_planes(write(serialised([gpu])))).copies
    assert {name: (copied.seconds, copied.occurrences) for name, copied in copies.items()} == {
        "MemcpyH2D": (pytest.approx(50e-6), 2),
        "MemcpyD2H": (pytest.approx(30e-6), 1),
    }
