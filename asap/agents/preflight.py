"""What can be known of a model before it is asked anything: its key, its extra, and whether somebody listens."""

import os
import socket
from urllib.parse import urlsplit

from asap.agents.models import BUILTIN, class_of
from asap.core.errors import ServiceError, UsageError
from asap.core.text import plain, redact

GEMINI_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
VERTEX = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
VERTEX_PLACE = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")
OWN_ADDRESS = {"ollama": "http://localhost:11434", "ollama_chat": "http://localhost:11434"}
"""Where a provider listens if nothing else is said."""
MUST_BE_ADDRESSED = {"hosted_vllm"}
ADDRESS_SUFFIXES = ("API_BASE", "BASE_URL")
PATIENCE_S = 3.0
NO_KEY_HINT = f"--model {BUILTIN} needs no key"


def check_model(name: str) -> None:
    """Refuse a model that cannot answer.

    Raises:
        UsageError: it is not known, or its key, its extra or its address is missing.
        ServiceError: nobody listens at its address.
    """
    kind = class_of(name).__name__ if name != BUILTIN else ""
    if kind == "Gemini":
        _check_gemini(name)
    elif kind == "LiteLlm":
        _check_provider(name)


def _check_gemini(name: str) -> None:
    if any(os.environ.get(switch, "").lower() in {"true", "1"} for switch in VERTEX):
        missing = [place for place in VERTEX_PLACE if not os.environ.get(place)]
        if missing and not os.environ.get("GOOGLE_API_KEY"):
            raise UsageError(f"Vertex needs {' and '.join(missing)}", where=name, hint=NO_KEY_HINT)
        base = os.environ.get("GOOGLE_VERTEX_BASE_URL")
    else:
        if not any(os.environ.get(key) for key in GEMINI_KEYS):
            raise UsageError(f"there is no key: set {GEMINI_KEYS[0]}", where=name, hint=NO_KEY_HINT)
        base = os.environ.get("GOOGLE_GEMINI_BASE_URL")
    if base:
        _check_address(name, base)


def _check_provider(name: str) -> None:
    import litellm

    provider = name.partition("/")[0]
    base = _address(provider)
    if base is None and provider in MUST_BE_ADDRESSED:
        raise UsageError(f"has no address: set {provider.upper()}_API_BASE", where=plain(name, 80), hint=NO_KEY_HINT)
    missing = litellm.validate_environment(name)["missing_keys"]
    keys = [key for key in missing if not key.endswith(ADDRESS_SUFFIXES)]
    if keys:
        raise UsageError(f"there is no key: set {' and '.join(keys)}", where=plain(name, 80), hint=NO_KEY_HINT)
    if base:
        _check_address(name, base)


def _address(provider: str) -> str | None:
    names = (f"{provider.removesuffix('_chat').upper()}_{suffix}" for suffix in ADDRESS_SUFFIXES)
    return next((os.environ[name] for name in names if os.environ.get(name)), OWN_ADDRESS.get(provider))


def _check_address(name: str, base: str) -> None:
    address = urlsplit(base)
    shown = plain(redact(f"{address.scheme}://{address.hostname}:{address.port or ''}".rstrip(":")), 120)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise UsageError(f"its address is not a URL: {shown}", where=plain(name, 80))
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname, port), PATIENCE_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"nobody answers at {shown}: {reason}"
        raise ServiceError(message, where=plain(name, 80), hint=f"start it, or --model {BUILTIN}") from error
