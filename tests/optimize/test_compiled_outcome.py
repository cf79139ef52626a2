from pathlib import Path

import numpy as np
import pytest

from asap.compiler.assess import assess
from asap.compiler.programs.options import CompileOptions
from asap.compiler.programs.request import CompiledMemory, CompileOutcome, make_request
from asap.core.units import GIB, Provenance
from asap.experiments import ExperimentStore
from asap.hardware import resolve_hardware
from asap.models import Architecture, Workload
from asap.optimize.by_evaluation import open_session, report_of
from asap.optimize.evaluators.compiler import CompilerEvaluator, outcome_of
from asap.optimize.outcome import Code, Cost, Outcome, Suggestion, feedback
from asap.optimize.request import Budget, Request
from asap.optimize.session import Session
from asap.plans import Plan
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.residual_kernel import COMPILED, log_likelihood
from asap.study.open_study import open_study
from optimization.tables import Table, compiled_table
from tests.cases import cases

PROGRAMS = Path(__file__).parents[1] / "data" / "hlo"
SLICE = resolve_hardware("v5e-16").slice
MODEL = Architecture(name="small", layers=6, d_model=2048, d_ff=8192, heads=16, kv_heads=16, head_dim=128, vocab=32000)
WORKLOAD = Workload(global_batch=16, sequence_length=2048)


def outcome(answer: CompileOutcome, plan: str = "data=16 remat=full", model: Architecture = MODEL):
    request = make_request(SLICE, Plan.parse(plan), model, WORKLOAD, effort=answer.effort)
    return outcome_of(assess(request, answer, SLICE, None), 30.0)


def compiled(program: str, peak: float = 2 * GIB, **more) -> CompileOutcome:
    """What the real compiler answered for v5e:4x4."""
    memory = CompiledMemory(peak=int(peak), arguments=0, outputs=0, aliased=0, temporaries=0, code=0, host=0)
    return CompileOutcome(
        status="compiled", memory=memory, slices=(0,) * 16, program=(PROGRAMS / f"{program}.hlo").read_text(),
        coordinates=tuple((x, y, 0) for x in range(4) for y in range(4)), **more,
    )  # fmt: skip


def codes(found):
    return [each.code for each in found.feedback]


@cases("program, plan, says")
def test_a_compiled_program_is_timed_and_says_what_it_waits_for(program, plan, says):
    found = outcome(compiled(program, peak=15 * GIB), plan)
    assert (found.status, found.provenance) == ("done", "compiled")
    assert found.step_time_s is not None
    assert codes(found)[0] == "SYNCHRONOUS_COLLECTIVE"
    assert says in found.feedback[0].explanation


def test_a_move_between_layouts_that_no_split_asks_for_is_told():
    found = outcome(compiled("tensor_v5e_4x4"), "data=4 model=4 remat=full")
    (told,) = (each for each in found.feedback if each.code == "RESHARDING")
    assert told.explanation.startswith("the compiler moves 2.00 MiB between layouts along model: no split asks for it")
    assert "RESHARDING" not in codes(outcome(compiled("fsdp_scan_v5e_4x4")))


def test_experts_exchange_tokens_on_purpose():
    model = MODEL.model_copy(update={"experts": 4, "experts_per_token": 1, "expert_d_ff": 8192})
    assert "RESHARDING" not in codes(outcome(compiled("tensor_v5e_4x4"), "data=4 expert=4 remat=full", model))


def test_hbm_that_is_left_over_is_said():
    found = outcome(compiled("fsdp_scan_v5e_4x4"))
    assert codes(found) == ["SYNCHRONOUS_COLLECTIVE", "MEMORY_TO_SPARE"]
    assert "13.8 GiB" in found.feedback[1].explanation


def test_what_does_not_fit_says_by_how_much():
    found = outcome(CompileOutcome(status="does_not_fit", needed_bytes=17.0 * GIB, available_bytes=15.75 * GIB))
    assert (found.status, codes(found), found.hbm_bytes) == ("rejected", ["OUT_OF_MEMORY"], 17.0 * GIB)
    assert "17.0 GiB" in found.feedback[0].explanation


def test_a_time_of_reduced_effort_is_marked():
    found = outcome(compiled("fsdp_scan_v5e_4x4", peak=15 * GIB, effort="reduced"))
    assert found.status == "done"
    assert codes(found)[0] == "REDUCED_EFFORT"


def test_without_a_time_it_is_no_result():
    found = outcome(compiled("fsdp_scan_v5e_4x4", effort="least"))
    assert (found.status, codes(found)) == ("failed", ["NO_STEP_TIME"])


def test_a_loop_that_cannot_be_counted_makes_no_time():
    program = (PROGRAMS / "fsdp_scan_v5e_4x4.hlo").read_text().replace("direction=LT", "direction=NE")
    found = outcome(compiled("fsdp_scan_v5e_4x4").model_copy(update={"program": program}))
    assert (found.status, codes(found)) == ("failed", ["NO_STEP_TIME"])
    assert "the trip count of" in found.feedback[0].explanation


@pytest.mark.process
def test_a_compilation_that_the_budget_ends_is_lost(home):
    study = open_study("llama-8b-tensor-16", ExperimentStore())
    evaluator = CompilerEvaluator(study, CompileOptions())
    assert study.plan is not None
    (found,) = evaluator.evaluate_all([str(study.plan)], 0.5)
    assert (found.status, codes(found)) == ("lost", ["BUDGET_SPENT"])


def report(*tries: tuple[str, float, tuple[Code, ...]]):
    """The report of a session in which these plans were compiled, with their seconds and codes."""
    request = Request(
        experiment=ExperimentStore().get("llama-8b-tensor-16"), evaluate="compiler", budget=Budget(evaluations=2)
    )
    session = Session.start("s", request.model_dump(mode="json"))
    for number, (plan, seconds, said) in enumerate(tries, 1):
        session.begin(Suggestion(configuration=str(Plan.parse(plan).completed_by(request.study.plan)), why=""))
        found = Outcome(
            status="done", step_time_s=seconds, provenance=Provenance.COMPILED, feedback=tuple(map(feedback, said))
        )
        session.end(number, found, Cost(seconds=1.0))
    return report_of(*open_session("s"))


NOW = "data=16 model=16 remat=full"


def test_a_report_calls_compiled_what_was_compiled_and_says_when_the_best_is_kept(home):
    found = report((NOW, 5.0, ()), ("data=256 remat=full", 6.0, ()))
    assert (found.best.saves, found.best.lines) == (0.0, ())
    assert found.best.evidence == "it is what runs now; the compiler"
    assert [line.split()[0] for line in found.learnt] == ["compiled"]


def test_a_slower_time_of_reduced_effort_decides_nothing(home):
    found = report((NOW, 5.0, ()), ("data=256 remat=full", 6.0, (Code.REDUCED_EFFORT,)))
    assert found.best.evidence == "it is what runs now; the compiler"
    assert any("may be faster than the best; a longer --time-limit tells" in line for line in found.learnt)
    assert not any("against the model" in line for line in found.learnt)


def test_a_best_of_reduced_effort_says_that_it_may_be_shorter(home):
    found = report((NOW, 5.0, (Code.REDUCED_EFFORT,)), ("data=256 remat=full", 4.0, (Code.REDUCED_EFFORT,)))
    assert found.best.evidence == "the compiler, with reduced effort: the step may be shorter"
    assert found.best.saves is None


def test_full_effort_replaces_what_reduced_effort_said(home):
    found = report(
        (NOW, 5.0, ()), ("data=256 remat=full", 6.0, (Code.REDUCED_EFFORT,)), ("data=256 remat=full", 4.0, ())
    )
    assert found.best.step_time_s == 4.0
    assert found.best.saves == pytest.approx(0.2)


MEASURED = load_calibration().full.residual_kernel
TIMES = [times / 4 for times in range(4, 25)]


def likelihood(table: Table, times: float) -> float:
    """Of the residuals of a table where they scatter so many times as widely as measured ones: mean of both views."""
    prior, kernel = table.prior, MEASURED.scattering(times)
    rows = [prior.index[name] for name in table.seconds]
    residuals = np.log(list(table.seconds.values())) - prior.log_time[rows]
    residuals = residuals - kernel.common(float(np.median(residuals)))
    columns = prior.parts[rows].T
    by_setting = kernel.shared(np.stack([prior.apart(row)[:, rows] for row in rows]))
    by_change = kernel.by_change.shared(change_between(list(columns[:, :, None]), list(columns[:, None, :])))
    own = np.eye(len(rows))
    both = (by_setting + kernel.own**2 * own, by_change + kernel.by_change.own**2 * own)
    return float(np.mean([log_likelihood(residuals, covariance) for covariance in both])) / len(rows)


def test_compiled_steps_scatter_as_widely_as_two_tables_of_compilations_say():
    tables = [compiled_table("dense"), compiled_table("moe16")]
    likelihoods = {times: sum(likelihood(table, times) for table in tables) for times in TIMES}
    assert max(likelihoods, key=likelihoods.__getitem__) == pytest.approx(COMPILED, abs=0.25)
    assert likelihoods[COMPILED] > likelihoods[1.0]


def test_residuals_that_scatter_more_correlate_as_before():
    apart = np.array([[0.0, 1.0, 3.0]])
    wider = MEASURED.scattering(3.0)
    assert wider.shared(apart) == pytest.approx(9 * MEASURED.shared(apart))
    assert wider.by_change.variance == pytest.approx(9 * MEASURED.by_change.variance)
    assert wider.variance == pytest.approx(9 * MEASURED.variance)
    assert (wider.limit, wider.reach) == (MEASURED.limit, MEASURED.reach)
