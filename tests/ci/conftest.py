import pytest
from ci_scratch import CONFIG, Scratch


@pytest.fixture(autouse=True)
def _home(shared_home, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(shared_home))
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_TOKEN", "GITHUB_EVENT_PATH", "GITHUB_API_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repo(tmp_path):
    return Scratch(tmp_path / "repository")


@pytest.fixture
def based(repo):
    """A repository with a configuration."""
    repo.commit(**{"a.yml": CONFIG})
    return repo
