"""One ``asap`` command in this process: its exit code and what it printed."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

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
