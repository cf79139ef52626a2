import json
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SMALL = {
    "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 16, "num_hidden_layers": 16,
    "num_key_value_heads": 16, "vocab_size": 32000,
}  # fmt: skip
BUNDLED = Path(__file__).resolve().parents[2] / "asap" / "experiments" / "bundled" / "cpu-8dev"


@pytest.fixture
def run_folder(tmp_path):
    target = tmp_path / "a run"
    shutil.copytree(BUNDLED, target)
    return target


def test_json_is_all_that_is_printed(asap):
    done = asap("analyze", "paper-v5p-512", "--format", "json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert data["schema"] == "asap.analysis/3"
    assert len(data["proposals"]) == 3
    assert data["proposals"][0]["citations"]


def test_a_pipe_gets_no_control_sequences(asap):
    done = asap("analyze", "paper-v5p-512")
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "proposal 1" in done.out.splitlines()[1]


@pytest.mark.parametrize("experiment", ["paper-v5p-512", "paper-v6e-16", "paper-v5e-256", "cpu-8dev"])
def test_the_report_is_one_screen_with_lines_that_can_be_pasted(asap, monkeypatch, experiment):
    monkeypatch.setenv("COLUMNS", "100")
    lines = asap("analyze", experiment).out.splitlines()
    assert len(lines) <= 25
    pasted = [line.strip() for line in lines if line.strip().startswith("ici_")]
    assert len(pasted) == 1
    whole = asap("analyze", experiment, "--full").out.splitlines()
    assert len({line.strip() for line in whole if line.strip().startswith("ici_")}) == 3
    assert not any("ici_pipeline_parallelism" in line for line in pasted)


def test_markdown_is_a_document(asap):
    assert asap("analyze", "paper-v5p-512", "--format", "markdown").out.startswith("# paper-v5p-512")


@pytest.mark.parametrize("part", ["", "plugins/profile", "plugins/profile/run", "plugins/profile/run/host.xplane.pb"])
def test_a_profile_can_be_given_in_every_usual_form(asap, run_folder, part):
    done = asap("analyze", str(run_folder / part), "--plan", "data=2 seq=2 model=2", "--format", "json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert (data["diagnosis"]["bottleneck"], data["situation"]) == ("communication", "no_architecture")
    assert data["considered"] > 3
    assert data["recommendation"]["keep_incumbent"]


def test_without_a_plan_there_is_a_diagnosis_and_the_reason_why_nothing_is_proposed(asap, run_folder):
    done = asap("analyze", str(run_folder), "--format", "json")
    assert done.code == 0
    data = json.loads(done.out)
    assert data["proposals"] == []
    assert "--plan" in data["recommendation"]["statement"]


def test_a_record_without_a_plan_is_analysed_from_a_start(asap, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], **SMALL}))
    said = ("--hardware", "v5e-16", "--batch", "64", "--sequence", "2048")
    assert asap("experiments", "add", "planless", "--config", str(config), *said).code == 0
    done = asap("analyze", "planless", "--format", "json")
    assert (done.code, done.err) == (0, "")
    data = json.loads(done.out)
    assert data["proposals"]
    assert "no plan is on record: data=16" in data["warnings"][0]


def test_nothing_known_is_insufficient_evidence(asap):
    asap("experiments", "add", "bare", "--hardware", "v5e-16")
    done = asap("analyze", "bare", "--format", "json")
    assert done.code == 5
    assert json.loads(done.out)["diagnosis"]["bottleneck"] == "insufficient_evidence"


@pytest.mark.parametrize("content", [b"", b"garbage" * 100])
def test_a_broken_profile_is_one_line(asap, tmp_path, content):
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(content)
    done = asap("analyze", str(path))
    assert done.code == 4
    assert "x.xplane.pb" in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_an_unwritable_home_still_gives_the_report_and_says_so_once(asap, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "file" / "home"))
    done = asap("analyze", "paper-v5p-512", "--format", "json")
    assert len(json.loads(done.out)["proposals"]) == 3
    assert done.code == 0
    assert done.err.count("worklog") == 1


def test_every_step_is_in_the_worklog(asap):
    session = json.loads(asap("analyze", "paper-v5p-512", "--format", "json").out)["session"]
    assert session in asap("sessions", "list").out
    assert "intact" in asap("sessions", "verify", session).out
    shown = asap("sessions", "show", session).out
    for kind in ("user_input", "model_request", "model_response", "result"):
        assert kind in shown
    assert json.loads(asap("sessions", "export", session, "--format", "json").out)["verdict"]["ok"]


def test_an_altered_record_is_found(asap, tmp_path):
    session = json.loads(asap("analyze", "paper-v5p-512", "--format", "json").out)["session"]
    path = next((tmp_path / "home" / "sessions").glob(f"{session}.jsonl"))
    path.write_bytes(path.read_bytes().replace(b"paper-v5p-512", b"paper-v5p-513", 1))
    done = asap("sessions", "verify", session)
    assert done.code == 4
    assert "altered" in done.err
