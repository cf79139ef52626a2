"""Queries over one run: typed answers, figures with an ID, and facts that move everything and can be taken back."""

import json
import re

import pytest

from asap.answers.figure import change as change_of
from asap.answers.inquiries import Inquiries
from asap.answers.inquiry import Inquiry
from asap.answers.library_queries import families, named_families
from asap.answers.plan_names import in_full
from asap.answers.registry import QUERIES, ask, query, signature
from asap.answers.test_queries import SettingRow, SettingsAnswer
from asap.core.errors import AsapError, InsufficientEvidenceError, NotFoundError, PlanError, UsageError
from asap.core.units import CHANGE, Provenance, Quantity
from asap.experiments import ExperimentStore
from asap.experiments.create import Statement, create_experiment
from asap.plans import Plan
from asap.reports.answers.blocks import figures_of
from asap.reports.answers.compact import to_compact
from asap.reports.answers.forms import to_text
from asap.reports.phrases import written
from asap.study.study import study_of
from tests.cases import cases, kept

KEPT = kept(__file__)
ARGUMENTS = KEPT["ARGUMENTS"]
COMPILES = {"verify"}
RUN = "llama-8b-tensor-16"


@pytest.fixture(scope="module", params=ExperimentStore().ids())
def answers(request, tmp_path_factory):
    """The answer of each query on a bundled run, or the error that says what it lacks."""
    inquiry = Inquiries(ExperimentStore(tmp_path_factory.mktemp("store"))).of(request.param)
    found = {}
    for name in QUERIES:
        if name in COMPILES:
            continue
        try:
            found[name] = ask(inquiry, name, **ARGUMENTS.get(name, {}))
        except AsapError as error:
            found[name] = error
    return found


@pytest.fixture
def run(store):
    return Inquiries(store).of(RUN)


@pytest.fixture
def store(tmp_path):
    return ExperimentStore(tmp_path)


def test_every_query_answers_or_says_what_it_lacks(answers):
    for name, found in answers.items():
        if isinstance(found, AsapError):
            assert found.hint, name
        else:
            json.loads(found.model_dump_json())
    assert not isinstance(answers["candidates"], AsapError)


def test_every_figure_has_a_source_and_an_id_of_its_own(answers):
    for name, found in answers.items():
        if isinstance(found, AsapError):
            continue
        values = {}
        for figure in figures_of(found):
            assert figure.source, (name, figure.id)
            assert values.setdefault(figure.id, figure.value) == figure.value, (name, figure.id)


def test_every_figure_stands_in_every_form(answers):
    for name, found in answers.items():
        if isinstance(found, AsapError):
            continue
        compact = json.dumps(to_compact(found))
        shown = {written(figure).partition(" (")[0] for figure in figures_of(found)}
        for value in shown:
            assert value.split()[0] in compact, (name, value)


def test_every_modelled_change_has_an_interval(answers):
    known = [found for found in answers.values() if not isinstance(found, AsapError)]
    changes = [one for found in known for one in figures_of(found) if one.unit == CHANGE]
    assert [one.id for one in changes if one.provenance is Provenance.MODELLED and one.low is None] == []


def test_memory_says_single_changes_that_need_less_those_that_cost_the_least_first(answers):
    found = answers["memory"]
    if not found.savings:
        pytest.skip("what runs says no settings")
    assert all(one.hbm.value < found.hbm.value for one in found.savings)
    slower = [one.vs_now.value for one in found.savings if one.vs_now]
    assert slower == sorted(slower)


def test_rows_of_prose_keep_their_intervals_and_numbers_their_units():
    gain = Quantity(value=0.943, low=0.82, high=1.09, unit="fraction", provenance=Provenance.MODELLED, source="test")
    said = dict.fromkeys(("setting", "name", "line", "source"), "of it " * 20) | {"why": "in 10 ms, " * 60}
    text = to_text(SettingsAnswer(lines=(), settings=(SettingRow(**said, vs_now=change_of("a", gain)),)))
    assert "-5.7 % (-18 to +9 %)" in text
    assert not re.search(r"10$", text, re.MULTILINE)


def test_lines_to_paste_are_never_broken(run):
    found = ask(run, "line", plan="1")
    assert all(f"    {one}\n" in to_text(found, width=40) for one in found.line)


def test_a_fact_moves_every_answer_and_is_taken_back_everywhere(run):
    asked = ("candidates", "predict", "compare", "next_test")
    before = {name: ask(run, name, **ARGUMENTS.get(name, {})) for name in asked}
    recorded = ask(run, "record", what="out_of_memory", plan="1")
    assert (recorded.order_changed, recorded.order[0].step_time.unit, recorded.predicted.unit) == (True, "s", "bytes")
    assert (first := before["candidates"].proposals[0]) not in ask(run, "candidates").proposals
    assert ask(run, "explain", plan=first).standing == "ruled out"
    ask(run, "retract", number=recorded.recorded[0].number)
    assert not ask(run, "facts").facts
    assert {name: ask(run, name, **ARGUMENTS.get(name, {})) for name in asked} == before


def test_a_measured_step_stands_beside_what_was_predicted(run):
    predicted = ask(run, "predict", plan="1").plan.step_time
    recorded = ask(run, "record", what="step_time", plan="1", value=predicted.value * 1.1 * 1000, unit="ms")
    tried = ask(run, "next_test").tried[0].measured.value
    assert (recorded.against_prediction.value, tried / predicted.value) == (pytest.approx(0.1), pytest.approx(1.1))
    died, (fact,) = ask(run, "record", what="out_of_memory", plan=recorded.before[0]), recorded.recorded
    assert died.contradicts == (fact.fact,)


@cases("name, replicas")
def test_plain_data_parallelism_takes_what_a_named_axis_leaves(name, replicas):
    now = Plan.parse("replica=8 model=4 stage=8")
    found = Plan.parse(in_full(name, now, now, changes=False))
    assert (found.ici.replica, found.devices) == (replicas, now.devices)


@pytest.mark.parametrize("name", ["remat=full", "model=4", "now remat=full", "1 remat=full", "proposal 2 remat=full"])
def test_what_a_name_leaves_out_stays_as_it_is(run, name):
    plan = ask(run, "predict", plan=name).plan.plan
    assert Plan.parse(plan).devices == run.now.devices
    assert name.split()[-1] in plan.split()


def test_what_was_measured_is_recorded_where_nothing_can_be_predicted():
    run = Inquiries(ExperimentStore()).of("paper-v6e-16")
    with pytest.raises(InsufficientEvidenceError):
        ask(run, "predict", plan="remat=full")
    recorded = ask(run, "record", what="step_time", plan="remat=full", value=4.1, unit="s")
    assert recorded.predicted is None
    assert [fact.number for fact in ask(run, "facts").facts] == [1]


@cases("value, low, high, unit, text")
def test_the_ends_of_an_interval_keep_their_units_where_these_differ(value, low, high, unit, text):
    quantity = Quantity(value=value, low=low, high=high, unit=unit, provenance=Provenance.MODELLED, source="test")
    assert written(quantity, brief=True) == text


def test_what_runs_is_named_by_rank_now_or_axes(run):
    assert run.plan("now") == run.study.plan
    assert run.plan("1") == run.plan("proposal 1") == run.order[0]
    assert run.plan(str(run.order[0])) == run.order[0]
    with pytest.raises(NotFoundError, match="no such proposal"):
        run.plan("9")


@cases("name, arguments")
def test_a_wrong_argument_is_one_plain_line(name, arguments):
    with pytest.raises(UsageError) as caught:
        query(name, arguments)
    assert len(str(caught.value).splitlines()) == 1
    assert "http" not in str(caught.value)
    assert "pydantic" not in str(caught.value)
    assert signature(name) in str(caught.value)


def test_more_chips_keep_the_batch_and_stretch_the_plan(run):
    answer = ask(run, "what_if", chips=512)
    assert answer.throughput.value > 0
    assert answer.per_chip.value < 0
    assert (
        "The batch stays 256 sequences; a launcher that states it for each device runs 512: batch=512." in answer.notes
    )
    assert "dcn.replica=2" in answer.then.plan


def test_a_micro_batch_is_said_by_its_size(run):
    for change in ({}, {"global_batch": 512}, {"chips": run.now.devices // 2}):
        then = Plan.parse(ask(run, "what_if", plan="micro_batch=2", **change).then.plan)
        assert change.get("global_batch", 256) == then.batch_shards * then.microbatches * 2
    assert {run.plan(one).microbatches for one in KEPT["NAMES_OF_MICRO_BATCH"]} == {8}
    with pytest.raises(PlanError, match="do not divide"):
        ask(run, "what_if", plan="micro_batch=3")


def test_a_supposed_run_starts_from_the_measured_step_as_plans_do(run, store):
    measured, step = Inquiries(store).of(RUN), 1.05 * run.incumbent.step_time.value
    ask(measured, "record", what="step_time", plan="now", value=step, unit="s")
    for change in ({"global_batch": 512}, {"sequence_length": 4096}, {"chips": 128}, {"hardware": "v5p-256"}):
        before, after = (ask(one, "what_if", **change).then for one in (run, measured))
        assert 1 < after.step_time.value / before.step_time.value <= 1.06
    ask(measured, "record", what="step_time", plan="1", value=8.0, unit="s")
    assert 8.0 * ask(measured, "predict", plan="1").plan.tokens_per_second.value == pytest.approx(256 * 8192)


def test_what_runs_is_no_proposal_and_is_kept_where_nothing_is_better(run):
    ask(run, "record", what="incumbent", plan="1")
    assert run.now not in run.order
    for fixed in ("mesh", "remat", "microbatches", "offload", "loss_chunks"):
        ask(run, "record", what="constraint", about=fixed)
    assert "Keep what you have" in run.advice
    assert ask(run, "explain").because == (run.advice,) == (ask(run, "next_test").advice,)


def test_a_step_that_the_model_does_not_explain_is_explained_before_a_plan_is_tested(run):
    expected = ask(run, "predict", plan="now").plan.step_time
    ask(run, "record", what="step_time", plan="now", value=5 * expected.value, unit="s")
    found = ask(run, "next_test")
    assert (found.test, found.line, found.plan) == (None, (), None)
    assert found.check in found.advice


def test_each_change_that_runs_on_record_tried_is_found_by_its_name(run):
    assert [name for name in families() if name not in named_families(name)] == []
    found = ask(run, "ideas", words="does async TP help?")
    assert [one.idea for one in found.ideas] == ["asynchronous tensor parallelism"]
    assert "asap optimize" in ask(run, "ideas", words="num_vocab_tiling=4").line[0]


def test_the_largest_batch_fits_and_the_next_does_not(run):
    found = ask(run, "solve", find="batch")
    largest, beyond = (int(text.replace(",", "")) for text in (found.found, found.next_one))
    assert ask(run, "what_if", global_batch=largest).then.fit == "fits"
    assert ask(run, "what_if", global_batch=beyond).then.fit != "fits"


def test_a_quantity_is_rounded_once(run):
    quantity = Quantity(value=2.4351, unit="s", provenance="modelled", source="a test", low=2.2, high=2.711)
    assert written(quantity) == "2.44 s (2.20 s to 2.71 s)"
    assert written(quantity, brief=True) == "2.44 s (2.20 to 2.71)"


CONFIGURATIONS = KEPT["CONFIGURATIONS"]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_whole_command_of_a_proposal_is_read_as_its_plan(store, tmp_path, name):
    hardware, text = CONFIGURATIONS[name]
    (tmp_path / name).write_text(text)
    said = Statement(hardware=hardware)
    inquiry = Inquiry(study_of(create_experiment("mine", said, config=tmp_path / name)), store)
    (tmp_path / "run.sh").write_text("\n".join(ask(inquiry, "line", plan="1", command=True).command))
    started = create_experiment("again", said, config=tmp_path / "run.sh")
    proposed = inquiry.proposals[0].plan
    assert (started.plan.ici, started.plan.remat) == (proposed.ici, proposed.remat)


def test_a_whole_command_is_refused_where_no_configuration_is_on_record(store):
    with pytest.raises(PlanError, match="no whole command is known"):
        ask(Inquiries(store).of("paper-v5p-512"), "line", plan="1", command=True)


@cases("section, size, counted")
def test_a_larger_batch_is_accumulated_where_the_stack_accumulates(store, tmp_path, section, size, counted):
    file = tmp_path / "train.toml"
    file.write_text(
        f'[model]\nname = "llama3"\nflavor = "8B"\n[training]\n{size} = 2\nseq_len = 8192\n'
        f'[{section}]\npipeline_parallel_degree = 1\n[activation_checkpoint]\nmode = "full"\n'
    )
    inquiry = Inquiry(study_of(create_experiment("mine", Statement(hardware="h100-32"), config=file)), store)
    assert f"microbatches={counted}" in ask(inquiry, "what_if", global_batch=128).then.plan


@cases("name, text, shown")
def test_the_line_of_what_runs_now_has_the_form_of_its_settings(store, tmp_path, name, text, shown):
    (tmp_path / name).write_text(text)
    study = study_of(create_experiment("mine", Statement(hardware="h100-8"), config=tmp_path / name))
    assert shown in "\n".join(ask(Inquiry(study, store), "line", plan="now").line)


def test_the_line_is_that_of_the_advice_where_nothing_is_proposed(store, tmp_path):
    (tmp_path / "z3.json").write_text('{"zero_optimization": {"stage": 3}}')
    (tmp_path / "train.yaml").write_text(kept(__file__)["TOO_LONG"])
    run = create_experiment("mine", Statement(hardware="h100-8"), config=tmp_path / "train.yaml")
    inquiry = Inquiry(study_of(run), store)
    assert not inquiry.order
    advised = "\n".join(inquiry.proposed.recommendation.lines)
    assert "\n".join(ask(inquiry, "line").line) == "\n".join(ask(inquiry, "next_test").line) == advised != ""
