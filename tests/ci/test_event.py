import json

import pytest
from ci_github import FakeGitHub, serve
from ci_reports import HEAD, configuration, report

from asap.ci.github.api import GitHub
from asap.ci.github.event import pull_request, read_event
from asap.ci.render.workflow import read_artifact
from asap.core.errors import AsapError, BadInputError, ConfigError, NotFoundError

FORK_RUN = {
    "repository": {"full_name": "o/r"},
    "workflow_run": {
        "head_sha": HEAD, "head_branch": "change", "head_repository": {"owner": {"login": "fork"}},
        "pull_requests": [],
    },
}  # fmt: skip


@pytest.fixture
def event(tmp_path):
    def write(content):
        path = tmp_path / "event.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def number(event):
    def find(content, state):
        with serve(state) as address:
            github = GitHub("t", address)
            try:
                return pull_request(read_event(event(content)), github)
            finally:
                github.close()

    return find


def test_the_pull_request_of_a_fork_is_found_by_its_branch_and_commit(number):
    state = FakeGitHub()
    state.pull(6, "c" * 40)
    state.pull(7, HEAD)
    state.pull(8, HEAD, head="other:change")
    assert number(FORK_RUN, state) == 7


def test_a_pull_request_that_moved_on_gets_no_comment(number):
    state = FakeGitHub()
    state.pull(7, "c" * 40)
    assert number(FORK_RUN, state) is None


def test_a_pull_request_of_the_same_repository_is_named_by_the_event(number):
    state = FakeGitHub()
    state.pull(7, HEAD)
    run = FORK_RUN["workflow_run"] | {"pull_requests": [{"number": 7, "head": {"sha": HEAD}}]}
    assert number(FORK_RUN | {"workflow_run": run}, state) == 7
    state.pulls[0]["state"] = "closed"
    assert number(FORK_RUN | {"workflow_run": run}, state) is None


@pytest.mark.parametrize("content", [
    "{", "[]", "{}", {"repository": {"full_name": "o/r"}},
    {"repository": {"full_name": "../../x"}, "workflow_run": FORK_RUN["workflow_run"]},
    {"repository": {"full_name": "o/r"}, "workflow_run": {"head_sha": "x y"}},
    {"repository": {"full_name": "o/r"}, "workflow_run": 7},
    {"repository": "o/r", "workflow_run": FORK_RUN["workflow_run"]},
    FORK_RUN | {"workflow_run": FORK_RUN["workflow_run"] | {"pull_requests": [7]}},
    {"repository": {"full_name": "o/r"}, "pull_request": {"number": float("inf"), "head": {"sha": HEAD}}},
    {"repository": {"full_name": "o/r"}, "pull_request": {"number": 10**30, "head": {"sha": HEAD}}},
    {"repository": {"full_name": "o/r\n"}, "pull_request": {"number": 7, "head": {"sha": HEAD}}}, "[" * 100_000,
])  # fmt: skip
def test_another_event_is_one_clear_error(event, content):
    with pytest.raises(BadInputError):
        read_event(event(content))


def test_an_artifact_is_read_back_as_it_was_written(tmp_path):
    written = report(configuration())
    (tmp_path / "asap-ci.json").write_text(written.to_json())
    assert read_artifact(tmp_path, HEAD) == written


@pytest.mark.parametrize(("change", "reason"), [
    ({"schema": "asap.ci/2"}, "schema"), ({"number": 1}, "number"), ({"head": "c" * 40}, "reports on cccccccccccc"),
    ({"head": "main"}, "head"), ({"version": "x" * 10_000}, "version"),
    ({"configurations": [{"path": "a", "status": "modified"}] * 501}, "configurations"),
    ({"configurations": [{"path": "a", "status": "modified", "line": -1}]}, "line"),
])  # fmt: skip
def test_a_hostile_artifact_is_refused(tmp_path, change, reason):
    (tmp_path / "asap-ci.json").write_text(json.dumps(json.loads(report().to_json()) | change))
    with pytest.raises(BadInputError, match=reason):
        read_artifact(tmp_path, HEAD)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"null", b"[" * 100_000, b" " * 10_000_001])
def test_an_artifact_that_is_no_report_is_one_clear_error(tmp_path, content):
    (tmp_path / "asap-ci.json").write_bytes(content)
    with pytest.raises(AsapError) as caught:
        read_artifact(tmp_path, HEAD)
    assert isinstance(caught.value, BadInputError | ConfigError)


def test_an_artifact_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "other.json").write_text(report().to_json())
    (tmp_path / "asap-ci.json").symlink_to(tmp_path / "other.json")
    with pytest.raises(BadInputError, match="symbolic link"):
        read_artifact(tmp_path)
    with pytest.raises(NotFoundError):
        read_artifact(tmp_path / "none")


def test_numbers_that_are_not_finite_are_shown_and_nothing_breaks(tmp_path):
    from asap.ci.render.comment import to_comment

    text = report(configuration()).to_json().replace("30.0", "1e999")
    (tmp_path / "asap-ci.json").write_text(text)
    assert "inf" in to_comment(read_artifact(tmp_path))
