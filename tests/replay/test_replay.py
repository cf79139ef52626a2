"""Recorded sessions, run again offline: the golden ones end the same, an altered one says where it parts."""

import importlib.util
import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from asap.agents.settings import Settings
from asap.agents.workflow.analyze import analyze
from asap.chat import open_conversation, restore
from asap.chat.chat import Chat
from asap.compiler.programs.options import REFERENCE_STEP, CompileOptions
from asap.core.errors import BadInputError, NotFoundError
from asap.core.files import home as home_folder
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.replay.replay import replay
from asap.reports.terminal import print_analysis
from asap.sharding_memory import Kind, Worklog, read_session, verify_session
from asap.sharding_memory.analyses import latest_session
from asap.sharding_memory.record import GENESIS, seal
from asap.study.study import Preferences
from tests.cases import cases
from tests.language_models.misbehaving import register

pytestmark = pytest.mark.slow

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.jsonl"))


@pytest.fixture
def golden(home):
    """Put a golden session among the user's own."""

    def put(path: Path) -> str:
        folder = home_folder() / "sessions"
        folder.mkdir(exist_ok=True)
        shutil.copy(path, folder)
        return path.stem

    return put


@pytest.fixture(scope="module")
def recorded(home):
    """A session of today's engine: an analysis and a chat over it."""
    store = ExperimentStore()
    session = analyze("paper-v6e-16", store=store, session="recorded-today").analysis.session
    chat = Chat(restore(session, store))
    for line in ("which one first?", "oom 1", "/explain 1", "/cost"):
        chat.turn(line, lambda piece: None)
    return session


THEIR_STEP = "tests.compiler.steps_of_a_user:matmul"


@needs_libtpu
@pytest.mark.parametrize(
    ("choice", "program"),
    [(REFERENCE_STEP, "reference step of tiny"), (CompileOptions(train_step=THEIR_STEP), THEIR_STEP)],
)
def test_a_session_whose_plans_were_compiled_is_replayed_with_the_compiler(home, choice, program):
    store = ExperimentStore()
    tiny = Architecture(name="tiny", layers=2, d_model=256, d_ff=512, heads=2, kv_heads=2, head_dim=128, vocab=512)
    name = f"compiled-{program.split()[0].rpartition(':')[2]}"
    store.add(Experiment(
        id=name, model=tiny, workload=Workload(global_batch=16, sequence_length=128),
        plan=Plan.parse("data=4 remat=full"),
        hardware=HardwareReference(name="v5e-4", chip="v5e", topology=(2, 2), devices=4),
    ))  # fmt: skip
    analysis = analyze(name, store=store, session=f"{name}-today", compile_options=choice).analysis
    assert analysis.incumbent.memory.total.source.endswith(program)
    printed = Console(file=StringIO(), width=120)
    print_analysis(analysis, printed, full=True)
    assert f"The plan that ran, compiled: {program}: compiles in" in printed.file.getvalue()
    if choice is REFERENCE_STEP:  # a product takes as long under every plan, so a plan that was compiled gains nothing
        assert analysis.proposals[0].prediction.memory.total.source.endswith(program)
        assert printed.file.getvalue().count(f"= Compiled: {program}: compiles in") == len(analysis.proposals)
    Chat(restore(analysis.session, store)).turn("/verify 1", lambda piece: None)
    records = read_session(analysis.session)
    noted = [r.payload for r in records if r.kind is Kind.NOTE and r.payload.get("event") == "compiled"]
    assert "data=4 remat=full" in noted[0]["verdicts"]
    found = replay(analysis.session, store)
    assert found.divergence is None
    assert found.same_result


def altered(session: str, name: str, change) -> str:
    """A copy of a session in which a record says something else; its chain is whole."""
    log = Worklog(name)
    for record in read_session(session):
        log.append(record.kind, change(record.kind, record.payload))
    return name


def test_what_was_wished_of_an_analysis_is_wished_of_its_replay_and_its_chat(home, store):
    preferences = Preferences(frozenset({"first_moment"}), 1000, {"v5e": 1.2}, "EUR")
    session = analyze("llama-8b-too-large", store=store, session="wished", preferences=preferences).analysis.session
    assert replay(session, store).divergence is None
    assert restore(session, store).study.preferences == preferences


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_session_ends_the_same(golden, store, path, monkeypatch):
    for name in ("GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    found = replay(golden(path), store)
    assert found.divergence is None, f"{found.divergence}; meant? python -m tests.replay.golden.record"
    assert found.steps > 40
    assert verify_session(found.replayed_as).ok


def test_the_golden_sessions_hold_what_they_are_for():
    texts = {path.stem: path.read_text() for path in GOLDEN}
    assert set(texts) == {"golden-builtin", "golden-gemini"}
    assert "97.3 %" in texts["golden-gemini"]
    last = json.loads(texts["golden-gemini"].splitlines()[-1])
    assert "~ The first proposal saves 97.3 %." in last["payload"]["output"]["text"]


def test_the_command_says_that_it_is_the_same(recorded, run_command):
    done = run_command("sessions", "replay", recorded)
    assert (done.code, done.err) == (0, "")
    assert "the same, byte for byte" in done.out


def test_a_tool_that_answers_otherwise_is_named(recorded, store, run_command):
    def change(kind, payload):
        if kind is Kind.TOOL_RESULT and payload["tool"] == "explain":
            return payload | {"result": payload["result"] | {"text": "otherwise"}}
        return payload

    name = altered(recorded, "altered-tool", change)
    found = replay(name, store)
    assert found.same_result
    assert (found.divergence.step, found.divergence.place) == ("tool_result explain", "payload.result.text")
    assert found.divergence.recorded == '"otherwise"'
    done = run_command("sessions", "replay", name)
    assert done.code == 4
    assert "explain" in done.err


@cases("of, change, place")
def test_another_result_is_not_called_the_same(recorded, golden, store, of, change, place):
    def changed(kind, payload):
        return payload | change if (kind, payload.get(of[1])) == (of[0], of[2]) else payload

    session = recorded if of[1] == "node" else golden(GOLDEN[1])
    found = replay(altered(session, f"altered-{of[1]}", changed), store)
    assert not found.same_result
    assert place in found.divergence.place


def test_a_session_whose_model_failed_fails_again(store):
    register()
    assert (
        analyze("paper-v6e-16", store=store, settings=Settings(model="test/refused"), session="failed-once").failure
        is not None
    )
    found = replay("failed-once", store)
    assert found.same_result, found.divergence


def test_a_turn_that_was_interrupted_leaves_its_facts_and_is_no_divergence(store):
    def interrupt(piece: str) -> None:
        raise KeyboardInterrupt

    session = analyze("paper-v6e-16", store=store, session="interrupted-turn").analysis.session
    chat = Chat(restore(session, store))
    with pytest.raises(KeyboardInterrupt):
        chat.turn("oom 1", interrupt)
    first = chat.turn("which one first?", lambda piece: None)
    found = replay(session, store)
    assert found.divergence is None
    assert found.same_result
    assert first.ranking[0] != str(chat.conversation.inquiry.picks[0])


def test_a_chat_does_not_take_up_a_replay(recorded, store):
    found = replay(recorded, store)
    assert latest_session("paper-v6e-16") != found.replayed_as
    assert open_conversation("paper-v6e-16", store).session != found.replayed_as


def test_what_cannot_be_replayed_is_one_line(recorded, store, run_command):
    with pytest.raises(NotFoundError):
        replay("nowhere", store)
    Worklog("nothing-in-it").append(Kind.USER_INPUT, {"text": "hello", "model": "builtin/planner"})
    with pytest.raises(NotFoundError, match="no analysis"):
        replay("nothing-in-it", store)
    name = altered(recorded, "broken-chain", lambda kind, payload: payload)
    path = Worklog(name).path
    path.write_text(path.read_text().replace("data=4 model=4", "data=4 model=2"))
    with pytest.raises(BadInputError, match="altered"):
        replay(name, store)
    done = run_command("sessions", "replay", "nowhere")
    assert (done.code, done.err.count("\n")) == (3, 1)


def test_other_processors_round_otherwise(recorded, store):
    found = replay(altered(recorded, "rounded-otherwise", lambda kind, payload: nudged(payload)), store)
    assert found.divergence is None
    assert not found.same_result
    assert "up to rounding" in found.verdict


def nudged(value):
    """Every float by one part in a trillion."""
    if isinstance(value, dict):
        return {key: nudged(item) for key, item in value.items()}
    if isinstance(value, list):
        return [nudged(item) for item in value]
    return value * (1 + 1e-12) if isinstance(value, float) else value


@pytest.mark.parametrize(("number", "payload"), [(1, False), (1, []), (1, {"event": "opened"})])
def test_a_sealed_payload_of_another_form_is_one_clear_error(golden, payload, number):
    session, path = golden(GOLDEN[0]), home_folder() / "sessions" / "other-forms.jsonl"
    previous, lines = GENESIS, []
    records = read_session(session)
    for record in records:
        changed = payload if record.sequence == number % len(records) else record.payload
        sealed, line = seal(record.sequence, record.time, record.kind, changed, previous)
        previous, lines = sealed.checksum, [*lines, line]
    path.write_bytes(b"".join(lines))
    for read in (restore, replay):
        with pytest.raises((BadInputError, NotFoundError), match=path.stem):
            read(path.stem, ExperimentStore())


@pytest.mark.parametrize("torn", [b"", b'{"sequence":5,"ti'])
def test_an_analysis_that_was_killed_says_so(golden, torn):
    session = golden(GOLDEN[0])
    path = home_folder() / "sessions" / "killed.jsonl"
    path.write_bytes(
        b"".join((home_folder() / "sessions" / f"{session}.jsonl").read_bytes().splitlines(True)[:5]) + torn
    )
    with pytest.raises(BadInputError, match="runs it anew"):
        replay("killed", ExperimentStore())
    with pytest.raises(NotFoundError, match="interrupted before the result"):
        restore("killed", ExperimentStore())
