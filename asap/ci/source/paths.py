"""Paths of a repository."""

from pathlib import PurePosixPath

from asap.core.text import plain

_LONGEST_REFERENCE = 250


def resolve_reference(folder: PurePosixPath, reference: str) -> str | None:
    """A relative reference as a repository path; ``None`` if it leaves the repository or is not a path."""
    if reference.startswith("/") or "\0" in reference or len(reference) > _LONGEST_REFERENCE:
        return None
    parts: list[str] = []
    for part in (folder / reference).parts:
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def printable_path(path: str) -> str:
    """A path as one line that is safe to print."""
    return plain(path.encode(errors="backslashreplace").decode(), 200)
