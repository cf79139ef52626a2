"""What a program is compiled with: the versions in this Python, or in another one where the user's own step lives.

MaxText cannot be installed beside google-adk (they ask for different websockets), so its Python is another one as a
rule. It sees this package alone on its search path, and nothing that is installed beside it.
"""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from asap.compiler.maxtext import RELEASES
from asap.compiler.request import Request
from asap.compiler.versions import compiler_versions
from asap.core.errors import AsapError, ConfigError
from asap.core.text import plain

_PATIENCE_S = 120.0
_SOURCES = (".py", ".yml")
_MAXTEXT = "--maxtext"
_TPU = "--tpu"


def versions_for(requests: Sequence[Request]) -> list[dict[str, str]]:
    """For each program the versions of jax, jaxlib, libtpu and, where it is asked for, of MaxText.

    Raises:
        ConfigError: one of them is missing, or is not the one that jax pins.
    """
    wanted = [(request.python, request.maxtext is not None, not request.on_cpu) for request in requests]
    found = {need: _versions(*need) for need in dict.fromkeys(wanted)}
    return [found[need] for need in wanted]


def _versions(python: str, maxtext: bool, tpu: bool) -> dict[str, str]:
    if python:
        return _in_another(python, maxtext, tpu)
    return {**compiler_versions(tpu=tpu), **(_maxtext() if maxtext else {})}


def path_to_us(folder: Path) -> str:
    """A search path with a folder where this package lies alone, before what was on it."""
    alone = folder / "path"
    alone.mkdir()
    (alone / "asap").symlink_to(Path(__file__).resolve().parent.parent, target_is_directory=True)
    return os.pathsep.join(part for part in (str(alone), os.environ.get("PYTHONPATH", "")) if part)


def _in_another(python: str, maxtext: bool, tpu: bool) -> dict[str, str]:
    where = f"--python {plain(python)}"
    with tempfile.TemporaryDirectory(prefix="asap-python-") as folder:
        command = [python, "-m", __name__, *([_MAXTEXT] if maxtext else []), *([_TPU] if tpu else [])]
        environment = {**os.environ, "PYTHONPATH": path_to_us(Path(folder))}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_PATIENCE_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"cannot be run ({type(error).__name__})", where=where) from None
    lines = done.stderr.strip().splitlines()
    if done.returncode:
        raise ConfigError(plain(lines[-1], 300) if lines else f"ends with {done.returncode}", where=where)
    return json.loads(done.stdout)


def _maxtext() -> dict[str, str]:
    """The version of MaxText, and a fingerprint of its sources, which people change in place."""
    found = next((spec for name in RELEASES if (spec := importlib.util.find_spec(name))), None)
    if found is None or not found.submodule_search_locations:
        hint = "name the Python that has it: --python PATH, or ASAP_PYTHON in a chat"
        raise ConfigError("MaxText is not installed", where=sys.executable, hint=hint)
    try:
        version = metadata.version("maxtext")
    except metadata.PackageNotFoundError:
        version = "a checkout"
    root = Path(next(iter(found.submodule_search_locations)))
    files = sorted(file for file in root.rglob("*") if file.suffix in _SOURCES and file.is_file())
    source = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    return {"maxtext": version, "maxtext_source": source}


def _main() -> None:
    try:
        print(json.dumps(_versions("", _MAXTEXT in sys.argv, _TPU in sys.argv)))
    except (AsapError, metadata.PackageNotFoundError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    _main()
