"""Python, the packages that every command needs, and the extras."""

import sys
from collections.abc import Iterator
from importlib import metadata

from asap import __version__
from asap.compiler.toolchain.versions import compiler_versions
from asap.core.errors import AsapError, ConfigError
from asap.doctor.check import Check, ok, optional, problem
from asap.experiments.store import BUNDLED
from asap.profiles import read_profile

OLDEST, NEWEST = (3, 11), (3, 13)
REQUIRED = ("google-adk", "chromadb", "numpy", "pydantic")
EXTRAS = {
    "jax": "jax", "xprof": "xprof",
    "litellm": "litellm", "mcp": "mcp", "ray": "ray", "html": "vl-convert-python", "gs": "gcsfs", "s3": "s3fs",
    "mlflow": "mlflow-skinny", "tensorboard": "tensorboard",
}  # fmt: skip
"""Extra of ASAP → the package that it brings."""


def package_checks() -> Iterator[Check]:
    """Versions of what is installed, and how to get what is not."""
    yield _python()
    yield ok("asap", __version__)
    for name in REQUIRED:
        version = _version(name)
        yield ok(name, version) if version else problem(name, "not installed", "pip install asap, in this Python")
    yield _profiles()
    yield _tpu_compiler()
    for extra, name in EXTRAS.items():
        version = _version(name)
        yield ok(f"extra {extra}", f"{name} {version}") if version else _without(extra)


def _without(extra: str) -> Check:
    return optional(f"extra {extra}", "not installed", f"pip install 'asap[{extra}]'")


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return ok("Python", f"{version}, {sys.executable}")
    supported = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    return problem("Python", version, f"use Python {supported}")


def _profiles() -> Check:
    """The profile that is bundled, read."""
    try:
        profile = read_profile(BUNDLED / "cpu-8dev")
    except (AsapError, ImportError, TypeError) as error:  # TypeError: another release of protobuf
        return problem("profiles", f"{type(error).__name__}: {error}", "pip install --force-reinstall asap")
    return ok("profiles", f"reads {len(profile.operations)} operations of the bundled profile")


def _tpu_compiler() -> Check:
    """libtpu, and whether it is the release that jax pins."""
    try:
        versions = compiler_versions()
    except ConfigError as error:
        return optional("TPU compiler", error.message, error.hint or "pip install 'asap[tpu]'")
    return ok("TPU compiler", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
