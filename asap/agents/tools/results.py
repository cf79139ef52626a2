"""What a tool gives back: plain JSON whose text can do no harm, also where something went wrong.

Text from files reaches a model as one line without control characters and without what looks like a key.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec

from pydantic import ValidationError, validate_call

from asap.answers.registry import complaint
from asap.core.errors import AsapError, UsageError
from asap.core.secrets import environment_secrets, without
from asap.core.text import plain

Parameters = ParamSpec("Parameters")
Answer = dict[str, Any]

LONGEST_NAME = 160


def answering(tool: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Check the arguments of a tool; an error of ASAP becomes an answer that says what to do."""
    checked = validate_call(tool)

    @wraps(tool)
    def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        try:
            return answering_errors(lambda: checked(*args, **kwargs))
        except ValidationError as error:
            return failure(UsageError(complaint(error), where=tool.__name__, hint="correct the arguments"))

    return answer


def answering_errors(find: Callable[[], Answer]) -> Answer:
    """What is found, made harmless; an error of ASAP as an answer."""
    try:
        return harmless(find())
    except AsapError as error:
        return failure(error)


def failure(error: AsapError) -> Answer:
    """An error as a tool reports it."""
    place = f"{error.where}: " if error.where else ""
    answer = {"error": f"{place}{error.message}", "kind": type(error).__name__}
    return harmless(answer | ({"hint": error.hint} if error.hint else {}))


def harmless(value: Any) -> Any:
    """Plain JSON with every string on one line, without control characters and secrets."""
    return _harmless(value, environment_secrets())


def _harmless(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return plain(without(value, secrets))
    if isinstance(value, Mapping):
        return {plain(key, LONGEST_NAME): _harmless(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless(item, secrets) for item in value]
    return value
