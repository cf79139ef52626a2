"""The command line: parse, call, render. Nothing heavy is imported before a command runs."""

import os
import sys
from collections.abc import Callable
from functools import partial
from io import TextIOWrapper

from asap import __version__

GLOBAL_OPTIONS = ("--quiet", "--verbose", "--debug")
OBJECTS_BETWEEN_COLLECTIONS = 400_000
"""Of the garbage collector: more than one command makes. Python's own 700 cost a tenth of the time of a short one."""


def main() -> None:
    """Run ``asap`` and exit with the code of what happened."""
    if sys.argv[1:] == ["--version"]:
        print(f"asap {__version__}")
        return
    import atexit
    import gc
    import signal
    import warnings

    from asap.cli.app import app
    from asap.core.errors import AsapError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows ASCII only shows ? for the rest
            _redact(stream)
    warnings.showwarning = _show_warning
    sys.argv[1:] = _todays(_everywhere(sys.argv[1:]))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # handled like Ctrl-C
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 1, 1)
    atexit.register(gc.freeze)  # a last collection would take half a second after an analysis
    try:
        app(prog_name="asap")
    except AsapError as error:
        if os.environ.get("ASAP_DEBUG"):
            raise
        _fail(str(error), error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:
        if os.environ.get("ASAP_DEBUG"):
            raise
        _fail(f"internal error: {type(error).__name__}: {error} (--debug shows where)", AsapError.exit_code)


def _redact(stream: TextIOWrapper) -> None:
    """Have whatever is printed pass the redactor; programs that are run write to their own streams."""
    if isinstance(stream.write, partial):
        return
    from asap.core.secrets import redacted

    def write(original: Callable[[str], int], text: str) -> int:
        original(redacted(text))
        return len(text)

    stream.write = partial(write, stream.write)  # type: ignore[method-assign]


def _everywhere(arguments: list[str]) -> list[str]:
    """The options of ``asap`` itself first, so that they may stand behind a command too."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    own = [option for option in arguments[:end] if option in GLOBAL_OPTIONS]
    return own + [option for at, option in enumerate(arguments) if at >= end or option not in GLOBAL_OPTIONS]


def _todays(arguments: list[str]) -> list[str]:
    """The arguments without names of earlier releases; each such name gets a line."""
    from asap.cli.app import as_overrides, renamed

    at = next((i for i, word in enumerate(arguments) if word not in GLOBAL_OPTIONS), len(arguments))
    words, said = renamed(as_overrides(arguments[at:]))
    for line in said:
        if "--quiet" not in arguments[:at]:
            print(f"asap: {line}", file=sys.stderr)
    return arguments[:at] + words


def _show_warning(message: object, category: type[Warning], *place: object) -> None:
    """Print our own warnings on one line; hide those of libraries."""
    if category.__module__.startswith("asap."):
        from asap.cli.shared.output import warn

        warn(message)


def _fail(message: str, code: int) -> None:
    from asap.core.secrets import redacted
    from asap.core.text import plain

    print(f"asap: {plain(redacted(message))}", file=sys.stderr)
    sys.exit(code)
