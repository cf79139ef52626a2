"""What a session has spent on language models, said on a terminal."""

import sys

from asap.cli.shared.output import Verbosity, verbosity, warn


def say_usage(session: str) -> None:
    """Calls, tokens and cost of each model on standard error; nothing in a pipe, or for the built-in model alone."""
    from asap.agents.llm.usage import in_words, summed, usages
    from asap.agents.settings import BUILTIN
    from asap.sharding_memory import read_session

    if not sys.stderr.isatty() and verbosity() is not Verbosity.VERBOSE:
        return
    for used in summed(usages(read_session(session))):
        if used.model != BUILTIN:
            warn(f"{used.model}: {in_words(used)} in session {session}")
