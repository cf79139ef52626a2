"""Names that commands and options had before 0.3: they work for one release, with a line that says the new one."""

from collections.abc import Sequence

COMMANDS = {
    "memory": "sessions",
    "cost": "llm cost",
    "evaluate chat": "llm evaluate",
    "ledger": "accuracy ledger",
    "backtest": "accuracy backtest",
    "calibrate": "accuracy calibrate",
    "serve mcp": "mcp",
}
"""What began a command → what does now."""

OPTIONS = {
    "analyze": {"--model": "--llm"},
    "chat": {"--model": "--llm", "--config": "--template"},
    "optimize": {"--model": "--llm", "--config": "--template"},
    "ci": {"--config": "--files"},
    "ci comment": {"--model": "--llm"},
    "llm evaluate": {"--model": "--llm"},
    "map": {"--on": "--hardware"},
    "history search": {"--limit": "--top"},
    "knowledge search": {"--limit": "--top"},
    "resolve": {"--timeout": "--time-limit"},
}
"""Command → option that it had → option that it has."""


def renamed(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments with today's names, and what to say of each old one; nothing behind ``--`` is touched."""
    words, said = list(arguments), []
    for old, new in COMMANDS.items():
        size = len(old.split())
        if words[:size] == old.split():
            words[:size] = new.split()
            said.append(f"`asap {old}` is now `asap {new}`; the old name goes with the next release")
            break
    known = max((c for c in OPTIONS if words[: len(c.split())] == c.split()), key=len, default="")
    end = words.index("--") if "--" in words else len(words)
    for at, word in enumerate(words[:end]):
        name, equals, value = word.partition("=")
        if new := OPTIONS.get(known, {}).get(name):
            words[at] = new + equals + value
            said.append(f"{name} of `asap {known}` is now {new}; the old name goes with the next release")
    return words, said
