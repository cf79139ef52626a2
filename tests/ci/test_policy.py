import pytest

from asap.ci.source.policy import Policy, matches, read_policy, read_prices
from asap.core.errors import ConfigError, NotFoundError
from tests.cases import cases


@cases("path, pattern, wanted")
def test_patterns(path, pattern, wanted):
    assert matches(path, pattern) is wanted


def test_a_policy_in_pyproject_is_found(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.asap.ci]\nregression = "fail"\n')
    assert read_policy(tmp_path / "pyproject.toml").regression == "fail"


@cases("text, reason")
def test_a_malformed_policy_is_one_clear_line(tmp_path, text, reason):
    (tmp_path / "asap.toml").write_text(text)
    with pytest.raises(ConfigError, match=reason):
        read_policy(tmp_path / "asap.toml")


def test_prices_are_positive_and_by_chip(tmp_path):
    (tmp_path / "prices.toml").write_text("currency = 'EUR'\n[chips]\nv5p = 4.2\n")
    assert read_prices(tmp_path / "prices.toml").chips == {"v5p": 4.2}
    (tmp_path / "prices.toml").write_text("[chips]\nv5p = -1\n")
    with pytest.raises(ConfigError, match="v5p"):
        read_prices(tmp_path / "prices.toml")
    with pytest.raises(NotFoundError):
        read_prices(tmp_path / "none.toml")


def test_by_default_a_regression_warns_and_what_cannot_run_fails():
    policy = Policy()
    assert (policy.invalid, policy.out_of_memory, policy.regression) == ("fail", "fail", "warn")


@pytest.mark.parametrize("suffix", [".yml", ".yaml", ".toml", ".json", ".sh"])
def test_every_kind_of_configuration_is_looked_for_unless_a_policy_says_which(suffix):
    assert Policy().covers(f"configs/run{suffix}")
    assert not Policy(configurations=("launch/*",)).covers(f"configs/run{suffix}")
