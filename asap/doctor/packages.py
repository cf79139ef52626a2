"""What is looked at, and Python, its packages, the extras, the language model and the search of notes."""

import os
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap import __version__
from asap.agents.llm.models import check_model
from asap.agents.settings import read_settings
from asap.compiler.toolchain.versions import compiler_versions
from asap.core.errors import AsapError, ConfigError, extra_hint
from asap.experiments.store import BUNDLED
from asap.knowledge import search_knowledge
from asap.profiles import read_profile

_INSTALL = "pip install --force-reinstall -e . in the clone of ASAP, with this Python"
State = Literal["ok", "optional", "problem"]


class Check(BaseModel):
    """A finding. ``optional`` is what only some commands need."""

    model_config = ConfigDict(frozen=True)

    name: str
    state: State
    found: str
    fix: str | None = Field(default=None, description="what to do about it; given wherever the state is not ok")


def ok(name: str, found: str) -> Check:
    """Nothing to do."""
    return Check(name=name, state="ok", found=found)


def optional(name: str, found: str, fix: str) -> Check:
    """Something is missing that only some commands need."""
    return Check(name=name, state="optional", found=found, fix=fix)


def problem(name: str, found: str, fix: str) -> Check:
    """Something keeps ASAP from working."""
    return Check(name=name, state="problem", found=found, fix=fix)


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
        yield ok(name, version) if version else problem(name, "not installed", _INSTALL)
    yield _profiles()
    yield _tpu_compiler()
    for extra, name in EXTRAS.items():
        version = _version(name)
        yield ok(f"extra {extra}", f"{name} {version}") if version else _without(extra)


def _without(extra: str) -> Check:
    return optional(f"extra {extra}", "not installed", extra_hint(extra))


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
        return problem("profiles", f"{type(error).__name__}: {error}", _INSTALL)
    return ok("profiles", f"reads {len(profile.operations)} operations of the bundled profile")


def _tpu_compiler() -> Check:
    """libtpu, and whether it is the release that jax pins."""
    try:
        versions = compiler_versions()
    except ConfigError as error:
        return optional("TPU compiler", error.message, error.hint or extra_hint("tpu"))
    return ok("TPU compiler", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN")
_QUERY = "FSDP all-gather"


def service_checks() -> Iterator[Check]:
    """Settings, model, keys (whether they are set, never what they are), notes."""
    yield _model()
    yield _keys()
    yield _notes()


def _keys() -> Check:
    found = [name for name in KEYS if os.environ.get(name)]
    return ok("keys", f"set: {', '.join(found)}" if found else "none set; builtin/planner needs none")


def _model() -> Check:
    try:
        settings = read_settings()
        check_model(settings.model)
    except AsapError as error:
        return problem("language model", str(error), error.hint or "`asap config set model builtin/planner`")
    return ok("language model", settings.model)


def _notes() -> Check:
    """A search through Chroma, local or the server of a team."""
    place = os.environ.get("ASAP_CHROMA_URL", "")
    name = f"Chroma, {place}" if place else "Chroma, local"
    try:
        hits = search_knowledge(_QUERY, 1)
    except AsapError as error:
        return problem(name, str(error), error.hint or "asap knowledge rebuild")
    if not hits:
        return problem(name, "the search finds no note", "asap knowledge rebuild")
    return ok(name, f"finds {hits[0].note.id}")
