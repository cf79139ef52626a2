import json
import re

import pytest
from ci_github import FakeGitHub, serve
from ci_scratch import CONFIG, TENSOR
from typer.testing import CliRunner

from asap.cli.services.ci import app
from asap.core.errors import UsageError

pytestmark = pytest.mark.process

BROKEN = CONFIG.replace("ici_fsdp_parallelism: 256", "ici_fsdp_parallelism: 100")


@pytest.fixture
def ci(repo, monkeypatch):
    monkeypatch.chdir(repo.folder)

    def run(*arguments):
        return CliRunner().invoke(app, list(arguments))

    return run


def test_the_exit_code_says_whether_the_policy_is_kept(based, ci):
    based.commit(**{"a.yml": TENSOR})
    based.commit(**{"a.yml": BROKEN})
    assert ci("--base", "HEAD~2", "--head", "HEAD~1").exit_code == 0
    assert ci("--base", "HEAD~2").exit_code == 1


def test_json_is_the_contract_and_output_holds_all_formats(based, ci, tmp_path):
    based.commit(**{"a.yml": TENSOR})
    done = ci("--base", "HEAD~1", "--format", "json", "--output", str(tmp_path / "out"))
    assert json.loads(done.stdout)["schema"] == "asap.ci/3"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"asap-ci.json", "comment.md", "asap.sarif"}
    assert json.loads((tmp_path / "out" / "asap.sarif").read_text())["version"] == "2.1.0"


def test_a_workflow_gets_annotations_and_a_summary(based, ci, tmp_path, monkeypatch):
    based.commit(**{"a.yml": BROKEN})
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = ci("--base", "HEAD~1")
    assert summary.read_text().startswith("before\n## ASAP: 1 configuration changed, 1 fails")
    assert "::error file=a.yml,line=5," in done.stderr
    assert "::error" not in done.stdout


def test_hardware_that_no_file_names_comes_from_the_command_line(repo, ci):
    text = "model_name_or_path: meta-llama/Meta-Llama-3-8B\nstage: sft\nfinetuning_type: lora\nlora_rank: {}\n"
    more = "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\ncutoff_len: 2048\nbf16: true\n"
    repo.commit(**{"a.yaml": text.format(8) + more})
    repo.commit(**{"a.yaml": text.format(64) + more})
    unknown, known = ci("--base", "HEAD~1", "--format", "json"), ci("--base", "HEAD~1", "--hardware", "h100-8")
    assert "--hardware h100-64" in unknown.stdout
    assert "hardware h100-8, 8 devices" in known.stdout
    assert "passes" in known.stdout


def test_patterns_prices_and_policy_come_from_the_command_line(repo, ci, tmp_path):
    (tmp_path / "prices.toml").write_text("currency = 'EUR'\n[chips]\nv5p = 1\n")
    (tmp_path / "policy.toml").write_text("[ci]\ninvalid = 'warn'\n")
    repo.commit(**{"a.yml": CONFIG, "b.yml": CONFIG})
    repo.commit(**{"a.yml": BROKEN, "b.yml": TENSOR})
    options = ("--prices", str(tmp_path / "prices.toml"), "--policy", str(tmp_path / "policy.toml"))
    done = ci("--base", "HEAD~1", "--files", "a.*", *options)
    assert done.exit_code == 0
    assert "b.yml" not in done.stdout
    assert re.search(r"price of a day .* EUR \|", ci("--base", "HEAD~1", "--files", "b.*", *options).stdout)


def test_without_a_base_there_is_nothing_to_compare_with(ci):
    assert isinstance(ci().exception, UsageError)


def test_a_hook_before_a_push_says_what_to_compare(based, ci, monkeypatch):
    based.commit(**{"a.yml": TENSOR})
    based.commit(**{"a.yml": BROKEN})
    monkeypatch.setenv("PRE_COMMIT_FROM_REF", "HEAD~2")
    monkeypatch.setenv("PRE_COMMIT_TO_REF", "HEAD~1")
    done = ci()
    assert (done.exit_code, "modified" in done.stdout) == (0, True)


def test_a_first_push_has_nothing_to_compare_with(repo, ci, monkeypatch):
    repo.commit(**{"a.yml": BROKEN})
    monkeypatch.setenv("PRE_COMMIT", "1")
    done = ci()
    assert (done.exit_code, "first push" in done.stdout) == (0, True)


def test_init_writes_two_workflows_and_keeps_what_is_there(ci, repo):
    action = "o/asap@" + "a" * 40
    assert ci("init", "--action", action).exit_code == 0
    for name in ("asap-check.yml", "asap-comment.yml"):
        assert f"uses: {action}\n" in (repo.folder / ".github" / "workflows" / name).read_text()
    assert isinstance(ci("init", "--action", action).exception, UsageError)
    assert "can be moved" in ci("init", "--action", "o/asap@v1", "--replace").stderr
    assert isinstance(ci("init", "--action", "asap\n  run: x@v1", "--replace").exception, UsageError)


def test_no_comment_is_made_if_no_configuration_changed(repo, ci, tmp_path):
    head = repo.commit(readme="x")
    repo.commit(other="y")
    ci("--base", "HEAD~1", "--head", "HEAD~1", "--output", str(tmp_path / "out"))
    request = {"head": {"sha": head}, "number": 7}
    (tmp_path / "event.json").write_text(json.dumps({"repository": {"full_name": "o/r"}, "pull_request": request}))
    state = FakeGitHub()
    state.pull(7, head)
    with serve(state) as address:
        place = ("--event", str(tmp_path / "event.json"), "--api", address, "--token", "t")
        done = ci("comment", "--artifact", str(tmp_path / "out"), *place)
    assert done.exit_code == 0
    assert state.comments == {}
