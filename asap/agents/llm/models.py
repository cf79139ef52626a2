"""Language models by name, and whether one can answer: its key, its extra, its server."""

import os
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from asap.agents.settings import BUILTIN, Settings
from asap.core.errors import ServiceError, UsageError, extra_hint
from asap.core.secrets import redacted
from asap.core.text import plain

if TYPE_CHECKING:
    from google.adk.models import BaseLlm

    from asap.agents.llm.budget import UsageMeter


HINT = f"{BUILTIN} needs no key; gemini-… needs GOOGLE_API_KEY; others are named provider/model, as LiteLLM knows them"
LITELLM_HINT = f"{extra_hint('litellm')}, or --llm {BUILTIN}"


def language_model(settings: Settings, meter: "UsageMeter | None" = None) -> "BaseLlm":
    """The model behind the agents, with the timeout and the retries of the settings.

    Args:
        settings: with its name: ``builtin/planner``, ``gemini-…``, or ``provider/model`` as LiteLLM knows it.
        meter: counts what it uses and enforces the limits.

    Raises:
        UsageError: no such model is known.
    """
    from asap.agents.llm.client import RetryingModel

    name = settings.model
    return RetryingModel(model=name, inner=_inner(name), retries=settings.retries, meter=meter)


def class_of(name: str) -> "type[BaseLlm]":
    """The class that google-adk has for a name.

    Raises:
        UsageError: there is none.
    """
    from google.adk.models import LLMRegistry

    try:
        return LLMRegistry.resolve(name)
    except (ValueError, ImportError) as error:
        if "/" in name and find_spec("litellm") is None:
            raise UsageError("needs the extra litellm", where=plain(name, 80), hint=LITELLM_HINT) from error
        raise UsageError("no such language model is known", where=plain(name, 80), hint=HINT) from error


def _inner(name: str) -> "BaseLlm":
    from google.adk.models import Gemini

    from asap.agents.llm.failures import guard_litellm, http_client
    from asap.agents.llm.planner import Planner

    if name == BUILTIN:
        return Planner(model=name)
    kind = class_of(name)
    if issubclass(kind, Gemini):
        from google.genai.types import HttpOptions

        return kind(model=name, client_kwargs={"http_options": HttpOptions(httpx_async_client=http_client())})
    if kind.__name__ != "LiteLlm":
        return kind(model=name)
    import litellm
    from google.adk.models.lite_llm import LiteLlm

    litellm.suppress_debug_info = True
    litellm.drop_params = True  # a temperature that a provider does not know
    guard_litellm()
    return LiteLlm(model=name, max_retries=0)


GEMINI_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
VERTEX = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
VERTEX_PLACE = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")
GEMINI_ADDRESS = "https://generativelanguage.googleapis.com"
VERTEX_ADDRESS = "https://aiplatform.googleapis.com"
DEFAULT_ADDRESS = {
    "ollama": "http://localhost:11434",
    "ollama_chat": "http://localhost:11434",
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
}
"""Address of a provider by default."""
NEEDS_ADDRESS = {"hosted_vllm"}
ADDRESS_SUFFIXES = ("API_BASE", "BASE_URL")
CONNECT_TIMEOUT_S = 3.0
NO_KEY_HINT = f"--llm {BUILTIN} needs no key"


def check_model(name: str) -> None:
    """Reject a model that cannot answer.

    Raises:
        UsageError: it is not known, or its key, its extra or its address is missing.
        ServiceError: no server answers at its address.
    """
    kind = class_of(name).__name__ if name != BUILTIN else ""
    if kind == "Gemini":
        _check_gemini(name)
    elif kind == "LiteLlm":
        _check_provider(name)


def _check_gemini(name: str) -> None:
    key = any(os.environ.get(key) for key in GEMINI_KEYS)
    if any(os.environ.get(switch, "").lower() in {"true", "1"} for switch in VERTEX):
        missing = [place for place in VERTEX_PLACE if not os.environ.get(place)]
        if missing and not key:
            raise UsageError(f"Vertex needs {' and '.join(missing)}", where=name, hint=NO_KEY_HINT)
        if not key:
            _check_credentials(name)
        _check_address(name, os.environ.get("GOOGLE_VERTEX_BASE_URL") or VERTEX_ADDRESS)
    else:
        if not key:
            raise UsageError(f"no key: set {GEMINI_KEYS[0]}", where=name, hint=NO_KEY_HINT)
        _check_address(name, os.environ.get("GOOGLE_GEMINI_BASE_URL") or GEMINI_ADDRESS)


def _check_credentials(name: str) -> None:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    try:
        google.auth.default()
    except DefaultCredentialsError as error:
        message = "Vertex needs credentials: gcloud auth application-default login"
        raise UsageError(message, where=name, hint=NO_KEY_HINT) from error


def _check_provider(name: str) -> None:
    import litellm

    provider = name.partition("/")[0]
    base = _address(provider)
    if base is None and provider in NEEDS_ADDRESS:
        raise UsageError(f"no address: set {provider.upper()}_API_BASE", where=plain(name, 80), hint=NO_KEY_HINT)
    missing = litellm.validate_environment(name)["missing_keys"]
    keys = [key for key in missing if not key.endswith(ADDRESS_SUFFIXES)]
    if keys:
        raise UsageError(f"no key: set {' and '.join(keys)}", where=plain(name, 80), hint=NO_KEY_HINT)
    if base:
        _check_address(name, base)


def _address(provider: str) -> str | None:
    names = (f"{provider.removesuffix('_chat').upper()}_{suffix}" for suffix in ADDRESS_SUFFIXES)
    return next((os.environ[name] for name in names if os.environ.get(name)), DEFAULT_ADDRESS.get(provider))


def _check_address(name: str, base: str) -> None:
    try:
        scheme, host, port = _parts(_via_proxy(base))
    except ValueError as error:
        raise UsageError(f"its address is not a URL: {plain(redacted(base), 120)}", where=plain(name, 80)) from error
    try:
        socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        message = plain(redacted(f"no server answers at {scheme}://{host}:{port}: {reason}"), 200)
        raise ServiceError(message, where=plain(name, 80), hint=f"start it, or --llm {BUILTIN}") from error


def _parts(base: str) -> tuple[str, str, int]:
    address = urlsplit(base)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise ValueError(base)
    return address.scheme, address.hostname, address.port or (443 if address.scheme == "https" else 80)


def _via_proxy(base: str) -> str:
    """The proxy that the environment sets for an address, else the address itself; ValueError if it is no URL."""
    scheme, host, _ = _parts(base)
    return base if proxy_bypass(host) else getproxies().get(scheme, base)
