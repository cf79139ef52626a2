"""Reading in a process of its own: results, errors and warnings come back; limits hold."""

import time
import warnings

import pytest

from asap.core.errors import ConfigError
from asap.core.limits import LimitReachedError, Limits, within
from asap.core.stores import StoreWarning

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """As in a program of one thread: only then is a process forked, and runners of tests have several."""
    monkeypatch.setattr("asap.core.limits.threading.active_count", lambda: 1)


def raising():
    raise ConfigError("is malformed", where="a.yml:3", hint="mend it")


def warning():
    warnings.warn("beside", StoreWarning, stacklevel=1)
    return 1


def endless():
    while True:
        pass


def test_what_is_read_comes_back_with_its_warnings():
    with pytest.warns(StoreWarning, match="beside"):
        assert within(Limits(), warning, "a") == 1


def test_an_error_comes_back_with_its_place_and_hint():
    with pytest.raises(ConfigError) as caught:
        within(Limits(), raising, "a")
    assert str(caught.value) == "a.yml:3: is malformed (mend it)"


@pytest.mark.parametrize(("limits", "read", "says"), [
    (Limits(seconds=1), endless, "within 1 s of processor time"),
    (Limits(memory=2**28), lambda: len(bytearray(2**30)), "memory"),
    (Limits(output=1000), lambda: "x" * 10_000, "more than 1000 B"), (Limits(), lambda: 1 / 0, "its reader died"),
], ids=["time", "memory", "output", "bug"])  # fmt: skip
def test_a_limit_that_is_reached_is_named(limits, read, says):
    began = time.monotonic()
    with pytest.raises(LimitReachedError, match=says):
        within(limits, read, "a")
    assert time.monotonic() - began < 30
