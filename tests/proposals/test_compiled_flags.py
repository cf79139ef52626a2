"""Missing flags, tried by a compiler whose answers are made up."""

import pytest

from asap.compiler.programs.request import CompiledMemory
from asap.compiler.verification import CollectiveRow, Verification
from asap.core.units import GIB
from asap.plans import Plan
from asap.proposals.compiled.rank_compiled import missing_compiler_flags, try_missing_flags
from asap.study.study import study_of
from tests.studies import study as run

PLAN = Plan.parse("data=16 microbatches=1 remat=full offload=activations")


@pytest.fixture
def study():
    record = run(str(PLAN), "llama3.1-8b", "v6e-16", 64, 2048, precision=None).experiment
    environment = {"LIBTPU_INIT_ARGS": "--xla_enable_async_all_gather=true"}
    return study_of(record.model_copy(update={"environment": environment}))


def answer(status, peak, exposed):
    memory = CompiledMemory(peak=peak * GIB, arguments=0, outputs=0, aliased=0, temporaries=0, code=0, host=0)
    row = CollectiveRow(
        kind="all-gather", axes="data", execution="asynchronous", count=1, size_bytes=1, busy_s=1.0, exposed_s=exposed
    )
    return Verification(
        program="p", plan=PLAN, hardware="v6e", devices=16, status=status, fits=True, verdict="it broke",
        capacity_bytes=32 * GIB, memory=memory, collectives=(row,),
    )  # fmt: skip


def test_what_missing_flags_change_is_said(study):
    assert "--xla_tpu_host_transfer_overlap_limit=24" in missing_compiler_flags(study)
    said = try_missing_flags(study, lambda flags: answer("compiled", 12, 0.25 if flags else 0.5))
    assert said.startswith("With the missing flags the compiler's program has the same HBM (12.0 GiB)")
    assert said.endswith("and exposed collectives 250 ms instead of 500 ms.")


def test_an_answer_that_failed_is_said_and_nothing_is_asked_where_nothing_is_missing(study):
    failed = try_missing_flags(study, lambda flags: answer("timed_out" if flags else "compiled", 12, 0.5))
    assert failed == "The missing flags were not compared: it broke"
    bare = study_of(study.experiment.model_copy(update={"plan": None, "model": None}))
    assert try_missing_flags(bare, lambda flags: pytest.fail("compiled")) is None
