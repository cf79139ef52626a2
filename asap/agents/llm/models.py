"""From the name of a language model to the model."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from asap.agents.settings import BUILTIN, Settings
from asap.core.errors import UsageError
from asap.core.text import plain

if TYPE_CHECKING:
    from google.adk.models import BaseLlm

    from asap.agents.llm.budget import UsageMeter

HINT = f"{BUILTIN} needs no key; gemini-… needs GOOGLE_API_KEY; others are named provider/model, as LiteLLM knows them"
LITELLM_HINT = f"pip install 'asap[litellm]', or --llm {BUILTIN}"


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
