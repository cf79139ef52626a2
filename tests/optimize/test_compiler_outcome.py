from pathlib import Path

from asap.compiler.assess import assess
from asap.compiler.programs.outcome import CompiledMemory, CompileOutcome
from asap.compiler.programs.request import make_request
from asap.core.units import GIB
from asap.hardware import resolve_hardware
from asap.models import Architecture, Workload
from asap.optimize.evaluators.compiler import outcome_of
from asap.plans import Plan

PROGRAMS = Path(__file__).parent.parent / "data" / "hlo"
SLICE = resolve_hardware("v5e-16").slice
MODEL = Architecture(
    name="small", layers=6, d_model=2048, d_ff=8192, heads=16, kv_heads=16, head_dim=128, vocab=32000, experts=4,
    experts_per_token=1, expert_d_ff=8192,
)  # fmt: skip
WORKLOAD = Workload(global_batch=16, sequence_length=2048)
MEMORY = CompiledMemory(peak=2 * GIB, arguments=GIB, outputs=GIB, aliased=GIB, temporaries=GIB, code=0, host=0)


def evaluated(plan, program):
    """What the compiler's answer that is kept in a file comes to."""
    answer = CompileOutcome(
        status="compiled", memory=MEMORY, coordinates=tuple((x, y, 0) for x in range(4) for y in range(4)),
        slices=(0,) * 16, program=(PROGRAMS / f"{program}.hlo").read_text(encoding="utf-8"),
    )  # fmt: skip
    request = make_request(SLICE, Plan.parse(plan), MODEL, WORKLOAD)
    return outcome_of(assess(request, answer, SLICE, None), 1.0)


def test_a_move_between_layouts_that_no_split_asks_for_is_told():
    found = evaluated("data=4 model=4 remat=full", "tensor_v5e_4x4")
    assert {"RESHARDING", "SYNCHRONOUS_COLLECTIVE", "MEMORY_TO_SPARE"} <= found.codes
    (told,) = (each for each in found.feedback if each.code == "RESHARDING")
    assert told.explanation == "the compiler moves 2.00 MiB between layouts along model: no split asks for it"
    assert "RESHARDING" not in evaluated("data=16 remat=full", "fsdp_scan_v5e_4x4").codes


def test_experts_exchange_tokens_on_purpose():
    assert "RESHARDING" not in evaluated("data=4 expert=4 remat=full", "tensor_v5e_4x4").codes
