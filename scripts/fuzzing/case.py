"""One hostile case: an example with words or bytes changed, a command over it, and what it may cost."""

import io
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from unittest.mock import patch

from hypothesis import HealthCheck
from hypothesis import strategies as st

from asap.cli import main
from asap.core.errors import AsapError

EXPECTED = {0, 1, 2, 3, 4, 5, 6}


def run(*arguments: str, stdin: str = "") -> str:
    """What a command printed.

    Raises:
        AssertionError: it ended with another exit code than the documented ones, or printed a control character.
        Exception: an internal error, as ``ASAP_DEBUG`` is set.
    """
    printed = io.StringIO()
    code = 0
    with (
        patch.object(sys, "argv", ["asap", *arguments]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogatepass")))),
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        try:
            main()
        except AsapError as error:
            code = error.exit_code
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    text = printed.getvalue()
    assert code in EXPECTED, f"exit code {code}: {text[-2000:]}"
    assert "Traceback" not in text, text[-2000:]
    assert not {"\x1b", "\x00", "\x07"} & set(text), f"a control character was printed: {text[-2000:]!r}"
    return text


SECONDS = 20.0
GIGABYTES = 2.0


class TooLongError(BaseException):
    """A case that took longer than it may. It derives from BaseException, so that no handler takes it for bad input."""


@contextmanager
def limits() -> Iterator[None]:
    """Interrupt what takes too long, and fail what took too much memory."""
    before, began = _peak(), time.monotonic()
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(int(SECONDS))
    try:
        yield
    finally:
        signal.alarm(0)
    if time.monotonic() - began > SECONDS:
        raise TooLongError(f"took {time.monotonic() - began:.0f} s")
    if _peak() - before > GIGABYTES * 1e9:
        raise MemoryError(f"took {(_peak() - before) / 1e9:.1f} GB")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooLongError(f"still running after {SECONDS:.0f} s")


HOSTILE = (
    *("", "0", "-1", "1", "2", "0.5", "1e400", "-1e400", "1e-400", "nan", "inf", "-Infinity", "NaN", "1e18", "0x10"),
    *("9" * 9, "9" * 19, "9" * 25, "-" + "9" * 25, "9" * 400, "9" * 5000, "1" + "0" * 30, f"{2**63}", f"{2**64}"),
    *("1_000", "1,000", "1.", ".5", "1e5", "٤٠", "１６", "²", "½", "Ⅷ", "௧", "1\u00a0000", "1\u2028000", "1\u202f000"),
    *("null", "true", "false", "~", "[]", "{}", "[[]]", '""', '"x"', "[1, 2]", '{"a": 1}', '"9e999"', "None"),
    *("[" * 2000, "{" * 500, '{"a":' * 2000, "- " * 500, "(" * 500, "&a [*a]", "<<: *a", "!!python/name:os.system"),
    *("a" * 5000, "../../etc/passwd", "/dev/zero", "~root", "\x00", "\x1b[2J", "\u202e", "\ufeff", "\ud7ff", "😀"),
    *("\\ud800", '"\\ud800"', "%s%n", "${HOME}", "$(id)", "`id`", "<script>", "@all", "]]>", "|", "\t", "\n", "\r"),
    *(" = ", ": ", ", ", "- ", "#", "'", '"', "\\", "model=8", "data=-1", "data=0", "model=" + "9" * 25),
)
"""What numbers, formats, terminals and shells choke on."""

SLOW_AND_LARGE = (
    HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example
)  # fmt: skip
"""What mutated files are, and what Hypothesis would complain of."""

_WORDS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\w.+-]+|\s+|.', re.DOTALL)
_LARGEST = 200_000


@st.composite
def mutated_text(draw: st.DrawFn, examples: list[str], most: int = 5) -> str:
    """An example with some words changed."""
    words = _WORDS.findall(draw(st.sampled_from(examples)))
    for _ in range(draw(st.integers(0, most))):
        at = draw(st.integers(0, max(len(words) - 1, 0)))
        end = at + draw(st.integers(1, 12))
        match draw(st.sampled_from(("replace", "insert", "drop", "repeat", "move", "cut", "anything"))):
            case "replace":
                words[at : _closed(words, at)] = [draw(st.sampled_from(HOSTILE))]
            case "insert":
                words[at:at] = [draw(st.sampled_from(HOSTILE))]
            case "drop":
                del words[at:end]
            case "repeat":
                words[at:at] = words[at:end] * draw(st.sampled_from((1, 2, 50)))
            case "move":
                words[at:at] = draw(st.sampled_from(words or [""]))
            case "cut":
                del words[at:]
            case _:
                words[at : at + 1] = [draw(st.text(max_size=8))]
    return "".join(words)[:_LARGEST]


def _closed(words: list[str], at: int) -> int:
    """Behind the word, or behind what closes the bracket that it opens."""
    depth = 0
    for end in range(at, len(words)):
        depth += (words[end] in "([{") - (words[end] in ")]}")
        if depth <= 0:
            return end + 1
    return at + 1


@st.composite
def mutated_bytes(draw: st.DrawFn, examples: list[bytes]) -> bytes:
    """An example with some bytes changed, dropped, repeated or cut off."""
    data = bytearray(draw(st.sampled_from(examples)))
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        end = at + draw(st.integers(1, 64))
        match draw(st.sampled_from(("replace", "insert", "drop", "repeat", "cut"))):
            case "replace":
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=4))
            case "insert":
                data[at:at] = draw(st.sampled_from((b"\xff" * 10, b"\x00" * 8, b"\x80\x80\x80\x80\x80\x01", b"\x7f")))
            case "drop":
                del data[at:end]
            case "repeat":
                data[at:at] = data[at:end] * 3
            case _:
                del data[at:]
    return bytes(data)
