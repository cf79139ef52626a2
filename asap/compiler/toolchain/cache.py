"""The cache of compiler answers: ``$ASAP_HOME/compiled/<fingerprint>``."""

import gzip
from pathlib import Path

from pydantic import ValidationError

from asap.compiler.programs.outcome import CompileOutcome
from asap.core.errors import BadInputError
from asap.core.files import home, private_file, private_folder, write_atomically
from asap.core.stores import warn_of_store

CACHEABLE = ("compiled", "sharded", "does_not_fit")
"""Answers that depend only on the request and the compiler."""

WITH_PROGRAM = ("compiled", "sharded")


def _folder(fingerprint: str) -> Path:
    return home() / "compiled" / fingerprint


def load_outcome(fingerprint: str) -> CompileOutcome | None:
    """The cached answer; ``None`` if there is none, or if it cannot be read."""
    folder = _folder(fingerprint)
    try:
        outcome = CompileOutcome.model_validate_json((folder / "outcome.json").read_text(encoding="utf-8"))
        program = folder / "program.hlo.gz"
        text = gzip.decompress(program.read_bytes()).decode("utf-8") if outcome.status in WITH_PROGRAM else ""
    except (OSError, EOFError, ValueError, ValidationError):
        return None
    return outcome.model_copy(update={"program": text})


def store_outcome(fingerprint: str, outcome: CompileOutcome) -> None:
    """Cache an answer, or say that it cannot be. The document is written last: no entry is left by a write cut off."""
    if outcome.status not in CACHEABLE:
        return
    folder = _folder(fingerprint)
    try:
        private_folder(folder)
        if outcome.program:
            temporary = private_file(folder / ".program.tmp")
            temporary.write_bytes(gzip.compress(outcome.program.encode("utf-8"), compresslevel=6))
            temporary.replace(folder / "program.hlo.gz")
        write_atomically(folder / "outcome.json", outcome.model_dump_json(indent=2))
    except (OSError, BadInputError) as error:
        warn_of_store(f"{folder.parent}: what was compiled is not kept, and is compiled again ({error})")
