"""Text that a script prints into a file: ``echo "zero_stage: 3" >> run.yaml``, ``printf 'a: %s\\n' 1 > run.yaml``."""

from collections.abc import Sequence

PRINTERS = ("echo", "printf")
_OPTIONS = {"-n", "-e", "-E", "-ne", "-en"}
_ESCAPES = {"\\n": "\n", "\\t": "\t"}
_ENDS = (">", ">>", "|", "<")


def printed(said: Sequence[str]) -> str | None:
    """What a command prints; ``None`` where it prints by a format that is not read.

    Args:
        said: its words, of which the first is one of ``PRINTERS``.
    """
    end = next((place for place, word in enumerate(said) if word in _ENDS), len(said))
    program, rest = said[0], list(said[1:end])
    given: set[str] = set()
    while rest and program == "echo" and rest[0] in _OPTIONS:
        given.add(rest.pop(0))
    if program == "echo":
        text = " ".join(rest)
        text = _unescaped(text) if any("e" in option for option in given) else text
        return text if any("n" in option for option in given) else f"{text}\n"
    pieces = _unescaped(rest[0]).split("%s") if rest else []
    if not pieces or len(pieces) != len(rest) or any("%" in piece for piece in pieces):
        return None
    return pieces[0] + "".join(f"{value}{piece}" for value, piece in zip(rest[1:], pieces[1:], strict=True))


def _unescaped(text: str) -> str:
    for escaped, meant in _ESCAPES.items():
        text = text.replace(escaped, meant)
    return text
