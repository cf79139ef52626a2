"""Where settings come from, and which source takes precedence."""

from pathlib import Path

import pytest

from asap.agents.settings import Settings, read_settings
from asap.core.errors import ConfigError
from tests.cases import cases


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ASAP_MODEL", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path


def test_nothing_set_gives_the_defaults():
    assert read_settings(model=None) == Settings()


def test_the_command_line_precedes_the_environment_and_that_the_file(monkeypatch):
    Path("asap.toml").write_text('[agents]\nmodel = "from/file"\nmax_calls = 7\n')
    assert read_settings().model == "from/file"
    monkeypatch.setenv("ASAP_MODEL", "from/environment")
    assert read_settings().model == "from/environment"
    assert read_settings(model="from/option").model == "from/option"
    assert read_settings(model="from/option", max_calls=None).max_calls == 7


def test_an_empty_variable_is_not_set(monkeypatch):
    monkeypatch.setenv("ASAP_MODEL", "")
    assert read_settings() == Settings()


def test_the_file_of_the_user_is_read_unless_the_folder_has_one_with_a_table():
    Path("home/config.toml").write_text("[agents]\nmax_calls = 5\n")
    assert read_settings().max_calls == 5
    Path("asap.toml").write_text("[other]\n")
    assert read_settings().max_calls == 5
    Path("asap.toml").write_text("[agents]\nmax_tokens = 9\n")
    assert (read_settings().max_calls, read_settings().max_tokens) == (Settings().max_calls, 9)


def test_a_field_of_the_retries_may_be_set_in_the_environment(monkeypatch):
    Path("asap.toml").write_text("[agents.retries]\nattempts = 2\ntimeout_s = 3\n")
    monkeypatch.setenv("ASAP_RETRIES__ATTEMPTS", "5")
    assert (read_settings().retries.attempts, read_settings().retries.timeout_s) == (5, 3.0)


@cases("written, named")
def test_a_malformed_file_is_named_with_its_key(written, named):
    Path("asap.toml").write_text(written)
    with pytest.raises(ConfigError, match=named) as error:
        read_settings()
    assert "asap.toml" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "value"), [("ASAP_MAX_CALLS", "many"), ("ASAP_RETRIES", "{")])
def test_a_malformed_variable_is_named(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=r"ASAP_MAX_CALLS|retries"):
        read_settings()


def test_every_setting_is_documented():
    assert all(field.description for field in Settings.model_fields.values())
