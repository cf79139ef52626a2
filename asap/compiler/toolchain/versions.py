"""Versions of what this Python compiles with: jax, jaxlib, libtpu, MaxText. Run as a module, prints them as JSON."""

import hashlib
import importlib.util
import json
import re
import sys
from importlib import metadata
from pathlib import Path

from asap.compiler.lowering.lower import PACKAGE_LAYOUTS
from asap.core.errors import AsapError, ConfigError, extra_hint

MAXTEXT_OPTION, TPU_OPTION = "--maxtext", "--tpu"
_SOURCES = (".py", ".yml")


def installed_versions(maxtext: bool, tpu: bool) -> dict[str, str]:
    """Versions of the compiler and, where it is asked for, of MaxText.

    Raises:
        ConfigError: one of them is missing, or libtpu is not the one that jax pins.
    """
    return {**compiler_versions(tpu=tpu), **(_maxtext() if maxtext else {})}


def compiler_versions(tpu: bool = True) -> dict[str, str]:
    """Versions of jax, jaxlib and, for TPUs, libtpu.

    Raises:
        ConfigError: one of them is missing, or libtpu is not the one that jax pins.
    """
    try:
        jax = metadata.version("jax")
    except metadata.PackageNotFoundError:
        extra = "tpu" if tpu else "jax"
        raise ConfigError("needs the extra " + extra, where="the compiler", hint=extra_hint(extra)) from None
    versions = {"jax": jax, "jaxlib": metadata.version("jaxlib")}
    return {**versions, "libtpu": _libtpu(jax)} if tpu else versions


def _libtpu(jax: str) -> str:
    hint = f'pip install "jax[tpu]=={jax}"'
    try:
        libtpu = metadata.version("libtpu")
    except metadata.PackageNotFoundError:
        raise ConfigError("the TPU compiler is not installed", where="libtpu", hint=hint) from None
    pinned = next((line for line in metadata.requires("jax") or [] if line.startswith("libtpu")), "")
    wanted = re.search(r"==([\d.]+?)(?:\.\*)?(?:;|\s|$)", pinned)
    if wanted and not f"{libtpu}.".startswith(f"{wanted.group(1)}."):
        raise ConfigError(f"{libtpu} is not the {wanted.group(1)} that jax {jax} pins", where="libtpu", hint=hint)
    return libtpu


def _maxtext() -> dict[str, str]:
    """The version of MaxText, and a hash of its sources, which people edit in place."""
    found = next((spec for name in PACKAGE_LAYOUTS if (spec := importlib.util.find_spec(name))), None)
    if found is None or not found.submodule_search_locations:
        hint = "name the interpreter that has it: --python PATH, or ASAP_PYTHON in a chat"
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
        print(json.dumps(installed_versions(MAXTEXT_OPTION in sys.argv, TPU_OPTION in sys.argv)))
    except AsapError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    _main()
