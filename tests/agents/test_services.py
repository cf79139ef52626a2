"""Real clients (google-genai, LiteLLM) against a local server: whatever goes wrong has a typed end and a whole log."""

import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path

import pytest

from asap.cli import main
from asap.sharding_memory import Kind, read_session, sessions, verify_session
from tests.agents.services import GEMINI, PLANTED
from tests.agents.services import MODELS as PROTOCOLS
from tests.cases import cases
from tests.language_models.faults import FAULTS
from tests.language_models.scripts import but, failure, gemini_end, well
from tests.language_models.server import Ask, Reply, Say

pytestmark = pytest.mark.slow

EXPERIMENT = "paper-v6e-16"
SETTINGS = "[agents.retries]\ntimeout_s = 60\nattempts = 2\nfirst_delay_s = 0.01\n"
MODELS = PROTOCOLS[:2]
ANSWER = "set_model_response"


def in_turn(faults):
    """Each fault over one protocol; :mod:`tests.agents.test_service_faults` has each over all of them."""
    return [
        pytest.param(getattr(model, "values", [model])[0], fault, marks=getattr(model, "marks", ()))
        for fault, model in zip(faults, cycle(PROTOCOLS), strict=False)
    ]


@dataclass
class Run:
    """What `asap analyze` left behind."""

    code: int
    out: str
    err: str
    session: str

    @property
    def analysis(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def asap(monkeypatch, capsys, tmp_path, home):
    """Run the command line with planted keys; they are looked for in every file that is left."""
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ASAP_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("asap.toml").write_text(SETTINGS)

    def run(model: str, *arguments: str) -> Run:
        line = ["asap", "analyze", EXPERIMENT, "--format", "json", "--llm", model, *arguments]
        monkeypatch.setattr("sys.argv", line)
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        done = Run(code, captured.out, captured.err, sessions()[-1])
        assert "Traceback" not in done.out + done.err
        assert verify_session(done.session).ok
        assert not leaked([home, tmp_path], done)
        return done

    return run


def leaked(folders: list[Path], run: Run) -> list[str]:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    texts = [path.read_bytes() for path in files] + [run.out.encode(), run.err.encode()]
    return [key for key in PLANTED.values() if any(key.encode() in text for text in texts)]


def usage(session: str) -> dict:
    notes = [record.payload for record in read_session(session) if record.kind is Kind.NOTE]
    return next(note for note in notes if note["event"] == "usage")


@pytest.mark.parametrize("model", PROTOCOLS)
def test_the_way_is_walked_with_a_real_client(asap, serving, model):
    server = serving(well)
    run = asap(model)
    assert run.code == 0, run.err
    assert run.analysis["answered_by"] == "agents"
    assert len(run.analysis["proposals"]) == 3
    used = usage(run.session)
    assert used["calls"] == len(server.questions)
    assert used["input_tokens"] == 1000 * used["calls"]


FAULTY = {
    "429": failure(429),
    "503": failure(503),
    "wrong arguments and unknown tools": Ask(
        [("flags", {"experiment": EXPERIMENT, "limit": "many"}), ("run_shell", {"command": "rm -rf /"})]
    ),
    "schema violation": Ask([(ANSWER, {"experiment": EXPERIMENT, "bottleneck": "the weather"})]),
    "plain text": Say("I would simply use more chips."),
}


@pytest.mark.parametrize(("model", "first"), in_turn(FAULTY))
def test_what_can_be_repaired_is_repaired(asap, serving, model, first):
    serving(but("analyzer", FAULTY[first], times=1))
    run = asap(model)
    assert run.code == 0, run.err
    assert run.analysis["answered_by"] == "agents"


KEY_TOLD = {"error": {"message": f"Incorrect API key provided: {' '.join(PLANTED.values())}", "code": 401}}
MET = (
    "429", "429, again in an hour", "503", "an array", "a page to log in", "a reset in the middle",
    "an endless answer", "a redirect",
)  # fmt: skip
"""Faults that whole runs meet."""


@pytest.mark.parametrize("model", MODELS)
def test_what_a_service_tells_of_keys_is_not_repeated(asap, serving, model):
    serving(but("proposal", Reply(400, KEY_TOLD)))
    ends_with_the_engine(asap(model))


@pytest.mark.parametrize(("model", "fault"), in_turn(MET))
def test_a_fault_in_the_middle_leaves_the_engines_result(asap, serving, model, fault):
    serving(but("proposal", FAULTS[fault]))
    ends_with_the_engine(asap(model))


ENDS = {"SAFETY": "SAFETY", "MALFORMED_FUNCTION_CALL": "MALFORMED_FUNCTION_CALL", "STOP": "an empty answer"}


@pytest.mark.parametrize(("reason", "agent"), [*zip(ENDS, ["analyzer", "proposal", "analyzer"], strict=True)])
def test_an_answer_that_gemini_stops_leaves_the_engines_result(asap, serving, reason, agent):
    serving(but(agent, gemini_end(reason)))
    run = asap(GEMINI)
    ends_with_the_engine(run)
    assert ENDS[reason] in run.err


@pytest.mark.parametrize("model", MODELS)
def test_prose_that_tells_a_key_is_shown_without_it(asap, serving, model):
    serving(but("proposal", Say(f"Your key is {' and '.join(PLANTED.values())}.")))
    run = asap(model)
    assert run.code == 0, run.err
    assert run.analysis["recommendation"]["prose"].startswith("~ Your key is")


@pytest.mark.parametrize(("model", "fault"), in_turn(["silence", "a byte now and then"]))
def test_a_model_that_takes_too_long_is_not_waited_for(asap, serving, model, fault):
    Path("asap.toml").write_text(SETTINGS.replace("timeout_s = 60", "timeout_s = 0.5"))
    serving(but("proposal", FAULTS[fault]))
    ends_with_the_engine(asap(model))


@pytest.mark.parametrize("model", MODELS)
def test_what_a_run_used_is_shown_by_cost(asap, serving, monkeypatch, capsys, model):
    Path("asap.toml").write_text(f'{SETTINGS}[agents.prices."{model}"]\ninput = 1.0\noutput = 10.0\n')
    serving(well)
    run = asap(model)
    monkeypatch.setattr("sys.argv", ["asap", "llm", "cost", run.session, "--format", "json"])
    with suppress(SystemExit):
        main()
    (used,) = json.loads(capsys.readouterr().out)
    assert (used["session"], used["model"], used["calls"]) == (run.session, model, 3)
    assert (used["input_tokens"], used["output_tokens"]) == (3000, 300)
    assert used["cost"] == pytest.approx(3000e-6 + 3000e-6)
    assert used["price_source"] == "settings"


@pytest.mark.parametrize("model", MODELS)
def test_endless_tool_calls_end_at_the_limit(asap, serving, model):
    server = serving(but("analyzer", Ask([("flags", {"experiment": EXPERIMENT})])))
    run = asap(model, "--max-calls", "9")
    ends_with_the_engine(run)
    assert "--max-calls" in run.err
    assert len(server.questions) == usage(run.session)["calls"] == 9


def test_a_limit_of_money_needs_a_price(asap, serving):
    server = serving(well)
    run = asap("gemini-of-tomorrow", "--max-cost", "1")
    assert run.code == 2
    assert "prices" in run.err
    assert not server.questions


def ends_with_the_engine(run: Run) -> None:
    assert run.code == 6, run.err
    analysis = run.analysis
    assert analysis["answered_by"] == "engine"
    assert len(analysis["proposals"]) == 3
    assert "The agents gave no answer" in analysis["warnings"][0]
    assert run.err.count("\n") == 1
    assert usage(run.session)["calls"]
    kinds = [record.kind for record in read_session(run.session)]
    assert Kind.ERROR in kinds
    assert kinds[-1] is Kind.RESULT


KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_USE_VERTEXAI")  # fmt: skip
VERTEX = {"GOOGLE_GENAI_USE_VERTEXAI": "true", "NO_GCE_CHECK": "true", "CLOUDSDK_CONFIG": "nowhere"}


@pytest.mark.parametrize(("given", "said"), [
    ({}, "GOOGLE_API_KEY"), (VERTEX, "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"),
    (VERTEX | {"GOOGLE_CLOUD_PROJECT": "mine", "GOOGLE_CLOUD_LOCATION": "global"}, "application-default login"),
])  # fmt: skip
def test_what_google_needs_is_said_before_anything_is_read(asap, monkeypatch, given, said):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    run = asap(GEMINI)
    assert (run.code, run.out) == (2, "")
    assert said in run.err
    assert [record.kind for record in read_session(run.session)] == [Kind.USER_INPUT, Kind.ERROR]


def test_vertex_is_walked_with_a_key(asap, serving, monkeypatch):
    server = serving(well)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", server.url)
    run = asap(GEMINI)
    assert run.code == 0, run.err
    assert run.analysis["answered_by"] == "agents"


@pytest.mark.parametrize("address", ["no-url", "http://", "http://[::1", "http://localhost:99999"])
def test_an_address_that_is_none_is_said_in_one_line(asap, monkeypatch, address):
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", address)
    run = asap(GEMINI)
    assert run.code in {2, 6}
    assert run.out == ""
    assert run.err.count("\n") == 1
    assert "internal" not in run.err


@pytest.mark.parametrize("model", MODELS)
def test_a_server_that_is_not_there_is_said_before_the_run(asap, monkeypatch, model):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_BASE", url)
    run = asap(model)
    assert (run.code, run.out) == (6, "")
    assert "no server answers at http://127.0.0.1" in run.err


@pytest.mark.skipif(find_spec("litellm") is None, reason="extra litellm")
@cases("model, said")
def test_what_litellm_needs_is_named(asap, monkeypatch, model, said):
    for name in ("ANTHROPIC_API_KEY", "HOSTED_VLLM_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    run = asap(model)
    assert (run.code, run.out) == (2, "")
    assert said in run.err


def test_a_malformed_settings_file_is_named(asap):
    Path("asap.toml").write_text("[agents]\nmax_call = 3\n")
    run = asap("builtin/planner")
    assert run.code == 4
    assert "asap.toml [agents]" in run.err
    assert "max_call" in run.err
