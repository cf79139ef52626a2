"""doctor, config, completion, and how much is said."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from asap.cli.app import app, as_overrides
from tests.cases import cases


@pytest.fixture
def complete(asap, monkeypatch):
    """What a shell would offer for words that were typed."""

    def run(*words):
        monkeypatch.setenv("_ASAP_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        offered = asap().out.split()
        monkeypatch.delenv("_ASAP_COMPLETE")
        return offered

    return run


def test_a_shell_is_offered_commands_experiments_and_axes(complete):
    assert complete("asap", "ana") == ["analyze"]
    assert complete("asap", "analyze", "paper-v6") == ["paper-v6e-16"]
    assert complete("asap", "predict", "cpu-8dev", "--plan", "mod") == ["model="]


@cases("typed, taken")
def test_options_of_a_launcher_are_settings(typed, taken):
    assert " ".join(as_overrides(typed.split())) == taken


def test_a_plan_is_completed_behind_what_is_typed():
    from asap.cli.shared.options import plan_terms

    assert list(plan_terms("data=8 mo")) == ["data=8 model="]
    assert "data=8 data=" not in list(plan_terms("data=8 "))


def test_the_doctor_finds_this_installation_well_and_never_shows_a_key(asap, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdefghij")
    bundle = tmp_path / "bug.md"
    done = asap("doctor", "--bundle", str(bundle), "--format", "json")
    assert done.code == 0, done.out
    checks = {check["name"]: check for check in json.loads(done.out.partition("\nreport for")[0])["checks"]}
    assert (checks["profiles"]["state"], checks["Chroma, local"]["state"]) == ("ok", "ok")
    assert checks["keys"]["found"] == "set: OPENAI_API_KEY"
    assert all(check["fix"] for check in checks.values() if check["state"] != "ok")
    assert "0123456789" not in done.out + bundle.read_text()
    assert "google-adk" in bundle.read_text()


def test_the_doctor_says_how_to_fix_a_problem(asap, monkeypatch):
    monkeypatch.setenv("ASAP_MODEL", "gemini-2.5-flash")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    done = asap("doctor")
    assert (done.code, "no key: set GOOGLE_API_KEY" in done.out) == (4, True)


def test_a_setting_is_set_shown_and_checked(asap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "home" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("# mine\n[agents]\nmax_calls = 5  # few\n")
    assert asap("config", "set", "retries.attempts", "2").code == 0
    assert re.search("# mine.*# few", file.read_text(), re.DOTALL)
    settings = json.loads(asap("config", "show", "--format", "json").out)
    assert (settings["max_calls"], settings["retries"]["attempts"]) == (5, 2)
    assert "is read" in asap("config", "path").out
    monkeypatch.setenv("ASAP_MAX_CALLS", "7")
    assert "ASAP_MAX_CALLS" in asap("config", "show").out
    unknown = asap("config", "set", "nonsense", "1")
    assert (unknown.code, unknown.err) == (2, "asap: nonsense: no such setting (`asap config show` lists them)\n")
    assert asap("config", "set", "max_calls", "many").code == 2
    assert "nonsense" not in file.read_text()


@pytest.mark.parametrize("option", ["--batch", "--sequence", "--slices"])
@pytest.mark.parametrize("command", ["analyze", "predict"])
def test_a_count_that_no_job_has_is_refused_by_its_option(asap, command, option):
    for count in ("100000000000", "9" * 30):
        done = asap(command, "llama-8b-too-large", option, count)
        assert done.code == 2
        assert f"Invalid value for '{option}'" in done.err


def test_how_much_is_said(asap, monkeypatch):
    assert "proposal: answers" in asap("analyze", "cpu-8dev", "--verbose").err
    quiet = asap("--quiet", "analyze", "cpu-8dev")
    assert (quiet.err, quiet.out == "") == ("", False)


def test_a_traceback_is_shown_to_those_who_debug(asap, monkeypatch):
    from asap.core.errors import NotFoundError

    monkeypatch.setenv("ASAP_DEBUG", "")
    assert asap("compare", "nosuch", "cpu-8dev").err.count("\n") == 1
    with pytest.raises(NotFoundError):
        asap("compare", "nosuch", "cpu-8dev", "--debug")


def summaries(group: Any, path: str = "asap") -> Iterator[tuple[str, str]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command.get_short_help_str(72 - max(map(len, group.commands)))
        if hasattr(command, "commands"):
            yield from summaries(command, f"{path} {name}")


SUMMARIES = dict(summaries(typer.main.get_command(app)))


@pytest.mark.parametrize("name", SUMMARIES)
def test_no_summary_is_cut_off(name):
    assert SUMMARIES[name][-3:] not in ("", "...")


@cases("arguments, code, words")
def test_bad_input_is_one_clear_line(asap, arguments, code, words):
    done = asap(*arguments)
    assert done.code == code, done.err
    assert (words in done.err, len(done.err.strip().splitlines())) == (True, 1)
    assert not {"Traceback", "internal"} & set(done.err.split())
    for typed in re.findall("`asap ([^`A-Z]+)`", done.err):
        assert asap(*shlex.split(typed)).code in (0, 5), typed
