import importlib.util
import json

import pytest
import typer
from typer.testing import CliRunner

from asap.agents.grounding.catalogue import Catalogues
from asap.agents.tools.toolbox import tool_of
from asap.agents.workflow.analyze import analyze
from asap.answers import test_queries
from asap.answers.inquiries import Inquiries
from asap.chat import restore
from asap.chat.chat import Chat
from asap.cli.plans.verify import verify
from asap.core.errors import AsapError, ConfigError, InsufficientEvidenceError, NotFoundError, PlanError, UsageError
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.sharding_memory import sessions

pytestmark = pytest.mark.compiles

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
TINY = Architecture(name="tiny", layers=2, d_model=256, d_ff=512, heads=2, kv_heads=2, head_dim=128, vocab=512)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Where programs are kept that one test compiled, for the others."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def run(home, compiled):
    (home / "compiled").symlink_to(compiled)
    record = Experiment(
        id="tiny", model=TINY, workload=Workload(global_batch=8, sequence_length=128),
        hardware=HardwareReference(name="v5e-4", chip="v5e", topology=(2, 2), devices=4),
    )  # fmt: skip
    ExperimentStore().add(record)
    app = typer.Typer()
    app.command()(verify)

    def invoke(*arguments):
        done = CliRunner().invoke(app, list(arguments))
        if isinstance(done.exception, AsapError):
            raise done.exception
        return done

    return invoke


@needs_libtpu
def test_a_decoder_is_verified_from_the_command_line(run):
    done = run("tiny", "--plan", "data=4 remat=full", "--format", "json")
    assert done.exit_code == 0
    (found,) = json.loads(done.stdout)
    assert (found["fits"], found["program"]) == (True, "reference step of tiny")
    assert found["step_time"]["provenance"] == "compiled"
    assert any(row["axes"] == "data" for row in found["collectives"])
    again = run("tiny", "--plan", "data=4 remat=full", "--time-limit", "1")
    assert again.exit_code == 0
    assert "fits" in again.stdout


@needs_libtpu
def test_settings_on_record_are_compiled_for_the_command_and_for_an_agent(run, monkeypatch):
    store = ExperimentStore()
    known = store.get("tiny").model_copy(update={"id": "tiny-minimal", "plan": Plan.parse("data=4 remat=minimal")})
    store.add(known, replace=True)
    (found,) = json.loads(run("tiny-minimal", "--plan", "data=2 model=2", "--format", "json").stdout)
    assert Plan.model_validate(found["plan"]) == Plan.parse("data=2 model=2 remat=minimal")
    monkeypatch.setattr(test_queries, "BUDGET", 1)
    verify = tool_of("verify", Inquiries(store), Catalogues())
    answer, refused = (verify("tiny-minimal", "data=2 model=2") for _ in range(2))
    assert answer["plan"] == "data=2 model=2 remat=minimal"
    assert answer["verdict"].split("compiles in")[0] == found["verdict"].split("compiles in")[0]
    assert "no more are allowed" in refused["error"]


@needs_libtpu
def test_what_is_sent_between_slices_has_a_time_of_the_network(run):
    two = ("--plan", "data=4 dcn.replica=2 remat=full", "--hardware", "2x v5e-4", "--format", "json")
    (found,) = json.loads(run("tiny", *two).stdout)
    (row,) = [row for row in found["collectives"] if row["axes"] == "replica"]
    assert (row["kind"], row["execution"]) == ("all-reduce", "asynchronous")
    assert row["busy_s"] > 0
    assert row["size_bytes"] > 0


def test_a_plan_for_gpus_is_answered_with_what_can_be_known(run):
    done = run("tiny", "--plan", "data=2 model=2", "--hardware", "h100-4", "--format", "json")
    assert done.exit_code == 5
    (found,) = json.loads(done.stdout)
    assert found["status"] == "sharded"
    assert found["argument_bytes"] > 0
    assert {row["axes"] for row in found["collectives"]} >= {"data", "model"}


def test_a_step_that_cannot_be_written_is_refused_before_anything_is_compiled(run):
    with pytest.raises(PlanError, match="does not divide"):
        run("tiny", "--plan", "data=16", "--hardware", "v5e-16")


@needs_libtpu
def test_a_plan_that_the_step_cannot_express_keeps_no_other_from_being_compiled(run):
    done = run("tiny", "--plan", "data=4 pipeline_repeats=2", "--plan", "data=4", "--format", "json")
    assert done.exit_code == 4
    not_expressible, compiled = json.loads(done.stdout)
    assert (not_expressible["status"], not_expressible["fits"]) == ("not_expressible", None)
    assert "interleaved" in not_expressible["verdict"]
    assert compiled["fits"] is True


def test_the_reference_step_is_not_compiled_for_a_run_that_trains_adapters(run):
    store = ExperimentStore()
    known = store.get("tiny")
    store.add(
        known.model_copy(update={"id": "lora", "workload": known.workload.model_copy(update={"adapter_rank": 8})})
    )
    with pytest.raises(InsufficientEvidenceError, match="trains no adapters"):
        run("lora", "--plan", "data=4")


def test_two_steps_at_once_are_refused(run):
    with pytest.raises(UsageError, match="mutually exclusive"):
        run("tiny", "--plan", "data=4", "--maxtext", "--train-step", "a:b")


@pytest.fixture
def run_known(run):
    """A run of which enough is known to propose plans, on GPUs, whose plans compile in seconds."""
    ExperimentStore().add(Experiment(
        id="known", model=TINY, workload=Workload(global_batch=8, sequence_length=128),
        plan=Plan.parse("data=2 model=2 remat=full"), hardware=HardwareReference(name="h100-4", chip="h100", devices=4),
    ))  # fmt: skip
    return run


def test_a_proposal_is_that_of_the_latest_session_and_makes_no_other(run_known):
    store = ExperimentStore()
    analysis = analyze("known", store=store, session="first").analysis
    done = run_known("known", "--proposal", "2", "--format", "json")
    assert Plan.model_validate(json.loads(done.stdout)[0]["plan"]) == analysis.proposals[1].plan
    assert "proposals of session first, predicted step time against now 1: -" in done.stderr
    assert list(sessions()) == ["first"]
    Chat(restore("first", store)).turn("oom 1", lambda piece: None)
    best = restore("first", store).inquiry.proposals[0].plan
    assert best != analysis.proposals[0].plan
    done = run_known("known", "--proposal", "1", "--format", "json")
    assert Plan.model_validate(json.loads(done.stdout)[0]["plan"]) == best


def test_without_a_session_for_this_slice_the_engine_proposes_alone(run_known):
    done = run_known("known", "--proposal", "1", "--format", "json")
    assert "proposals of the engine alone: no session" in done.stderr
    assert not list(sessions())
    analysis = analyze("known", store=ExperimentStore(), session="first").analysis
    assert Plan.model_validate(json.loads(done.stdout)[0]["plan"]) == analysis.proposals[0].plan
    done = run_known("known", "--proposal", "1", "--hardware", "a100-4", "--format", "json")
    assert "another model, workload, hardware or plan" in done.stderr
    with pytest.raises(NotFoundError, match="no proposal 9"):
        run_known("known", "--proposal", "9")


def test_without_a_plan_on_record_one_must_be_given(run):
    with pytest.raises(InsufficientEvidenceError, match="no plan"):
        run("tiny")


def test_a_step_that_is_no_reference_is_refused(run):
    with pytest.raises(UsageError, match=r"package\.module:function"):
        run("tiny", "--plan", "data=4", "--train-step", "nonsense")
    with pytest.raises(UsageError, match="no such module"):
        run("tiny", "--plan", "data=4", "--train-step", "no_such_package_here:step")


def test_a_missing_compiler_is_one_line_with_the_command(run, monkeypatch):
    from importlib import metadata

    known = metadata.version

    def version(name):
        if name == "libtpu":
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(ConfigError, match="pip install"):
        run("tiny", "--plan", "data=4")
    monkeypatch.setattr(metadata, "version", lambda name: "0.0.1" if name == "libtpu" else known(name))
    with pytest.raises(ConfigError, match="pins"):
        run("tiny", "--plan", "data=4")
