"""Repairs of a program: one line written anew, or added."""

from asap.core.feedback import END_OF_LINE, Repair


def write_line(text: str, keyword: str, value: str) -> Repair:
    """The edit after which the program says a decision; the line that says it now is replaced.

    Args:
        text: the program.
        keyword: what the line begins with: ``grid``, ``layout segments``.
        value: what follows it.
    """
    line = f"{keyword} {value}"
    for number, source in enumerate(text.split("\n"), 1):
        if source.split("#")[0].strip().startswith(f"{keyword} "):
            return Repair(line=number, column=1, end_column=END_OF_LINE, text=line)
    return Repair(line=1, column=1, end_column=1, text=f"{line}\n")
