"""Whether a file is a script of a shell: by its suffix, else by its first line."""

import re
from pathlib import Path

from asap.core.errors import UnreadError
from asap.experiments.files.documents import read_text

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")
_OTHERS = (".zsh", ".ksh", ".fish", ".pbs", ".qsub", ".lsf", ".bsub", ".job", ".submit")
"""Of other shells and schedulers."""
_DOCUMENTS = (".yaml", ".yml", ".json", ".toml", ".conf", ".py")
_SHEBANG = re.compile(rb"#![^\n]*?[/ ](?:ba|z|k|da|fi)?sh\b")
_FISH = re.compile(r"#![^\n]*[/ ]fish\b")
_MAKEFILES = ("makefile", "gnumakefile")
_LONGEST = 200


def _is_makefile(path: Path) -> bool:
    return path.name.casefold() in _MAKEFILES or path.suffix == ".mk"


def script_text(path: Path) -> str:
    """The text of a script; raises UnreadError where it is none of the Bourne shell, and like
    :func:`asap.experiments.files.documents.read_text`.
    """
    text = read_text(path)
    if _is_makefile(path):
        raise UnreadError("is a Makefile, which is not read", where=str(path), hint="give the script that it runs")
    if path.suffix == ".fish" or _FISH.match(text):
        raise UnreadError("is a script of Fish, which is not read", where=str(path))
    return text


def is_script(path: Path) -> bool:
    """Whether a file is a script of a shell; one that is not there has its suffix alone."""
    if path.suffix in (*SCRIPTS, *_OTHERS) or _is_makefile(path):
        return True
    if path.suffix in _DOCUMENTS:
        return False
    try:
        with path.open("rb") as stream:
            return _SHEBANG.match(stream.read(_LONGEST)) is not None
    except OSError:
        return False
