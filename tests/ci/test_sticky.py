import threading
import time

import pytest
from ci_github import BOT, Failure, FakeGitHub, serve

from asap.ci.github.api import GitHub
from asap.ci.github.sticky import upsert
from asap.ci.render.comment import MARKER
from asap.core.errors import ServiceError, UsageError
from tests.cases import cases

BODY = f"{MARKER}\n\nnew"


@pytest.fixture
def state():
    return FakeGitHub()


@pytest.fixture
def waits():
    return []


@pytest.fixture
def github(state, waits):
    with serve(state) as address:
        client = GitHub("secret-token", address, waits.append)
        yield client
        client.close()


def test_the_first_report_makes_a_comment_and_the_next_updates_it(state, github):
    assert upsert(github, "o/r", 7, BODY).action == "created"
    assert upsert(github, "o/r", 7, BODY + "er").action == "updated"
    assert upsert(github, "o/r", 7, BODY + "er").action == "kept"
    assert [one["body"] for one in state.comments.values()] == [BODY + "er"]


def test_a_comment_beyond_the_first_page_is_found(state, github):
    for _ in range(250):
        state.add("talk")
    number = state.add(f"{MARKER}\nold", BOT)
    assert upsert(github, "o/r", 7, BODY).id == number
    assert len(state.of()) == 1


def test_a_strangers_comment_with_our_marker_is_left_alone(state, github):
    number = state.add(f"{MARKER}\nmine", "mallory")
    upsert(github, "o/r", 7, BODY)
    assert state.comments[number]["body"] == f"{MARKER}\nmine"
    assert len(state.of()) == 1


def test_our_own_comment_without_marker_is_left_alone(state, github):
    number = state.add(f"somebody quoted {MARKER}", BOT)
    upsert(github, "o/r", 7, BODY)
    assert state.comments[number]["body"] == f"somebody quoted {MARKER}"


def test_doubles_are_taken_away(state, github):
    first = state.add(f"{MARKER}\na", BOT)
    state.add(f"{MARKER}\nb", BOT)
    upsert(github, "o/r", 7, BODY)
    assert [(one["id"], one["body"]) for one in state.of()] == [(first, BODY)]


def test_without_create_an_old_comment_is_updated_and_no_new_one_made(state, github):
    assert upsert(github, "o/r", 7, BODY, create=False).id is None
    assert state.comments == {}
    state.add(f"{MARKER}\nold", BOT)
    assert upsert(github, "o/r", 7, BODY, create=False).action == "updated"


def test_jobs_that_post_at_once_leave_one_comment(state):
    together = threading.Barrier(4, timeout=10)
    state.before_create = together.wait
    with serve(state) as address:
        clients = [GitHub("t", address, lambda s: None) for _ in range(4)]
        jobs = [threading.Thread(target=upsert, args=(c, "o/r", 7, f"{BODY} {i}")) for i, c in enumerate(clients)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        for client in clients:
            client.close()
    assert len(state.of()) == 1


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_failing_server_is_asked_again(state, github, waits, method):
    state.add(f"{MARKER}\nold", BOT)
    state.failures.append(Failure(method, 502, times=2))
    assert upsert(github, "o/r", 7, BODY).action == "updated"
    assert waits == [1.0, 2.0]


def test_a_post_that_may_have_arrived_is_not_repeated_blindly(state, github):
    state.failures.append(Failure("POST", 502, after=True))
    upsert(github, "o/r", 7, BODY)
    assert [one["body"] for one in state.of()] == [BODY]


def test_a_comment_that_somebody_deletes_meanwhile_is_made_anew(state, github):
    state.add(f"{MARKER}\nold", BOT)
    state.before_patch = state.comments.clear
    assert upsert(github, "o/r", 7, BODY).action == "created"
    assert [one["body"] for one in state.of()] == [BODY]


@pytest.mark.parametrize(("failure", "said"), [
    (Failure("GET", 503, times=99), "did not answer: HTTP 503"),
    (Failure("GET", 301, {"Location": "http://127.0.0.1:1/"}), "has moved"),
    (Failure("POST", 403), "pull-requests: write"),
], ids=["stays down", "a redirect, which is not followed", "a missing permission"])  # fmt: skip
def test_a_server_that_does_not_do_it_is_one_clear_error(state, github, waits, failure, said):
    state.failures.append(failure)
    with pytest.raises(ServiceError, match=said):
        upsert(github, "o/r", 7, BODY)
    assert bool(waits) == (failure.status == 503)


@cases("status, headers, wait")
def test_a_rate_limit_is_waited_for(state, github, waits, status, headers, wait):
    state.failures.append(Failure("GET", status, headers))
    assert upsert(github, "o/r", 7, BODY).action == "created"
    assert waits == [wait]


def test_a_rate_limit_of_an_hour_is_not_waited_for(state, github, waits):
    reset = str(int(time.time()) + 3600)
    state.failures.append(Failure("GET", 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, times=9))
    with pytest.raises(ServiceError, match="run the job again later"):
        upsert(github, "o/r", 7, BODY)
    assert waits == []


@cases("api")
def test_a_token_goes_nowhere_without_encryption(api):
    with pytest.raises(UsageError, match="https only"):
        GitHub("t", api)


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX-Evil: 1", "ü"])
def test_a_token_is_one_word(token):
    with pytest.raises(UsageError, match="no token"):
        GitHub(token, "https://api.github.com")
