"""Keys planted wherever text comes in appear in nothing that is printed, stored or exported."""

import io
import json
import shutil
from contextlib import suppress

import pytest

from asap.cli import main
from asap.core.files import home as home_folder
from asap.core.secrets import names_secret, redacted, strip_secrets
from asap.core.text import REDACTED, redact
from tests.cases import kept
from tests.ci.ci_github import FakeGitHub, serve
from tests.ci.ci_scratch import CONFIG, TENSOR, Scratch
from tests.core.planted import KINDS, planted

KEPT = kept(__file__)
KEYS = KEPT["KEYS"]
NAMED = kept(__file__)["NAMED"]
TOLD = KEPT["TOLD"]
PLANTED = [planted(kind, 4) for kind in KINDS]
TEXTS = "\n".join(text for texts, _ in PLANTED for text in texts)
COMMENTS = "\n".join(f"# {line}" for line in TEXTS.splitlines())
ALL = (
    *(value for _, values in PLANTED for value in values), *KEYS.values(), *NAMED.values(),
    "urlpasswordplanted", "urltokenplanted01", "sigplanted0123456789",
    "amzplanted0123456789", "wordplanted7", "optionplanted77", "dbplanted",
)  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_the_form_of_a_key_is_recognised(kind):
    assert KEYS[kind] not in redact(f"log: {KEYS[kind]}, and more")


@pytest.mark.slow
def test_planted_keys_appear_nowhere(tmp_path, monkeypatch, capsys, indexed_home):
    monkeypatch.setenv("ASAP_HOME", str(shutil.copytree(indexed_home, tmp_path / "home")))
    for name, value in NAMED.items():
        monkeypatch.setenv(name, value)
    told = " ".join((*KEYS.values(), *TOLD.values(), *(f"{name}={value}" for name, value in NAMED.items())))
    url = "https://user:urlpasswordplanted@storage.example/run"
    config = tmp_path / "run.yml"
    config.write_text(
        f"# {told}\n{COMMENTS}\nrun_name: {json.dumps(f'{told} {TEXTS}')}\nmodel_name: llama2-7b\n"
        "per_device_batch_size: 4\n"
        f"max_target_length: 4096\nbase_output_directory: '{url}'\nhf_access_token: {KEYS['Hugging Face']}\n"
        "database_password: dbplanted\nici_fsdp_parallelism: 64\nici_tensor_parallelism: 4\n"
    )
    note = tmp_path / "note.md"
    note.write_text(f"# Sharding\n\nTensor parallelism is paid for in all-reduces. {told} {url}\n\n{TEXTS}\n")
    log = tmp_path / "train.log"
    log.write_text(f"{told}\n{TEXTS}\n" + "completed step: 5, seconds: 2.31\n" * 20)
    bad = tmp_path / "bad.yml"
    bad.write_text(f"per_device_batch_size: [{told}\n{TEXTS}\n")
    for arguments in (
        ("experiments", "add", "planted", "--config", str(config), "--hardware", "v5e-256", "--step-time", str(log),
         "--description", f"{told} {url}\n{TEXTS}"),
        ("experiments", "show", "planted"), ("experiments", "show", "planted", "--format", "json"),
        ("knowledge", "ingest", str(note)), ("knowledge", "search", f"all-reduce of tensor parallelism {told}"),
        ("analyze", "planted", "--session", "s"), ("analyze", "planted", "--format", "markdown"),
        ("predict", "planted", "--plan", f"data={KEYS['OpenAI']}"), ("predict", "--config", str(bad)),
        ("experiments", "add", "other", f"run_name={told}", "--config", str(bad)),
        ("chat", "planted", "--session", "s"), ("report", "planted", "--format", "markdown"),
        ("report", "planted", "--html", str(tmp_path / "home" / "report.html")), ("compare", "planted", "planted"),
        ("accuracy", "ledger", "--format", "json"), ("doctor", "--bundle", str(tmp_path / "home" / "bundle.md")),
        ("sessions", "export", "s"), ("sessions", "show", "s", "--format", "json"),
    ):  # fmt: skip
        monkeypatch.setattr("sys.argv", ["asap", *arguments])
        said = f"our token is {told} {url}\nproposal 1 failed: {told}\n{TEXTS}\n/export\n"
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
        with suppress(SystemExit):
            main()
        printed = capsys.readouterr()
        assert [key for key in ALL if key in printed.out + printed.err] == [], arguments
    kept = {path: path.read_bytes() for path in home_folder().rglob("*") if path.is_file()}
    assert [(path.name, key) for path, data in kept.items() for key in ALL if key.encode() in data] == []


@pytest.mark.slow
def test_planted_keys_appear_in_no_artifact_and_no_comment(tmp_path, monkeypatch, capsys, indexed_home):
    monkeypatch.setenv("ASAP_HOME", str(shutil.copytree(indexed_home, tmp_path / "home")))
    for name, value in NAMED.items():
        monkeypatch.setenv(name, value)
    told = " ".join((*KEYS.values(), *TOLD.values(), *(f"{name}={value}" for name, value in NAMED.items())))
    url = "https://user:urlpasswordplanted@storage.example/run"
    repository, state, out = Scratch(tmp_path / "repository"), FakeGitHub(), tmp_path / "out"

    def asap(*arguments: str) -> None:
        monkeypatch.setattr("sys.argv", ["asap", "ci", *arguments])
        with suppress(SystemExit):
            main()

    def with_keys(config: str, run: str) -> str:
        lines = config.replace("llama70", json.dumps(f"{run} {told} {TEXTS}")).splitlines()
        settings = (
            f"hf_access_token: {KEYS['Hugging Face']}", f"base_output_directory: '{url}/{run}'",
            f"database_password: dbplanted {run}",
        )  # fmt: skip
        return "".join(f"{line} # {told} {url}\n" for line in (*lines, *settings)) + f"{COMMENTS}\n"

    unknown = "".join(f"secret_{at}: '{key}'\n" for at, key in enumerate(KEYS.values()))
    repository.commit(**{name: with_keys(CONFIG, "first") for name in ("a.yml", "b.yml", "c.yml")})
    broken = {"b.yml": f"per_device_batch_size: [{told}\n{TEXTS}\n", "c.yml": CONFIG + unknown}
    head = repository.commit(**{"a.yml": with_keys(TENSOR, "second")}, **broken)
    monkeypatch.chdir(repository.folder)
    for form in ("markdown", "json", "sarif"):
        asap("--base", "HEAD~1", "--format", form, "--output", str(out))
    state.pull(7, head)
    event = {"repository": {"full_name": "o/r"}, "pull_request": {"number": 7, "head": {"sha": head}}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    with serve(state) as address:
        asap(
            "comment", "--artifact", str(out), "--event", str(tmp_path / "event.json"), "--token", "t", "--api", address
        )
    printed = capsys.readouterr()
    posted = [comment["body"] for comment in state.of()]
    assert len(posted) == 1
    written = [path.read_text() for path in out.iterdir()]
    assert len(written) == 3
    assert any(REDACTED in text for text in written)
    assert [key for key in ALL for text in (printed.out, printed.err, *posted, *written) if key in text] == []


NONE = tuple(KEPT["NONE"])


@pytest.mark.parametrize("kind", KINDS)
def test_planted_secrets_are_struck(kind):
    texts, values = planted(kind, 4)
    said = [redacted(f"before {text} after") for text in texts]
    assert [one for one in values if any(one in text for text in said)] == []


@pytest.mark.parametrize("text", NONE)
def test_nothing_else_is_struck(text):
    assert redacted(text) == text


def test_redaction_done_twice_is_redaction_done_once():
    for text in (text for kind in KINDS for text in planted(kind, 1)[0]):
        once = redacted(text)
        assert redacted(once) == once


def test_a_key_names_what_is_secret():
    secret = ("db.password", "hub_token", "token", "aws_secret_access_key", "WANDB_API_KEY", "client-secret")
    harmless = ("eos_token", "tokens_per_second", "num_experts_per_token", "pad_token", "keys", "tokenizer", "monkey")
    assert [name for name in secret if not names_secret(name)] == []
    assert [name for name in harmless if names_secret(name)] == []
    assert strip_secrets({"db": {"password": "plain"}, "eos_token": "</s>"}) == {
        "db": {"password": "[redacted]"}, "eos_token": "</s>",
    }  # fmt: skip


def test_the_folder_of_a_shell_is_no_password(monkeypatch):
    monkeypatch.setenv("PWD", "/home/somebody/project")
    assert redacted("python /home/somebody/project/train.py") == "python /home/somebody/project/train.py"
