"""Whether a file is a script of a shell: by its suffix, else by its first line."""

import re
from pathlib import Path

from asap.experiments.files.documents import read_text
from asap.experiments.shell.fish import from_fish, is_fish
from asap.experiments.shell.makefile import as_script, is_makefile

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")
_OTHERS = (".zsh", ".ksh", ".fish", ".pbs", ".qsub", ".lsf", ".bsub", ".job", ".submit")
"""Of other shells and schedulers."""
_DOCUMENTS = (".yaml", ".yml", ".json", ".toml", ".conf", ".py")
_SHEBANG = re.compile(rb"#![^\n]*?[/ ](?:ba|z|k|da|fi)?sh\b")
_LONGEST = 200


def script_text(path: Path) -> str:
    """The text of a script, of a Makefile or a script of Fish in the Bourne shell's words; raises like
    :func:`asap.experiments.files.documents.read_text`.
    """
    text = read_text(path)
    if is_makefile(path):
        return as_script(text)
    return from_fish(text) if is_fish(text, path.suffix) else text


def is_script(path: Path) -> bool:
    """Whether a file is a script of a shell; one that is not there has its suffix alone."""
    if path.suffix in (*SCRIPTS, *_OTHERS) or is_makefile(path):
        return True
    if path.suffix in _DOCUMENTS:
        return False
    try:
        with path.open("rb") as stream:
            return _SHEBANG.match(stream.read(_LONGEST)) is not None
    except OSError:
        return False
