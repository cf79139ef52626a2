"""A function as a tool of a language model, declared in few tokens: each request of a turn carries all of them."""

from typing import Any

from google.adk.tools import FunctionTool
from google.genai import types

_LEFT_OUT = {
    "title",
    "default",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minItems",
    "maxItems",
}
"""What a declaration can do without: a call that breaks a limit is answered by an error that names it."""


class DeclaredTool(FunctionTool):
    """A function whose declaration has its purpose, and the type and the meaning of each parameter."""

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        found = super()._get_declaration()
        if found is None or found.parameters_json_schema is None:
            return found
        return found.model_copy(update={"parameters_json_schema": shortened(found.parameters_json_schema)})


def shortened(schema: Any) -> Any:
    """A JSON schema without titles, defaults and limits; a parameter that may be null is one that may be left out."""
    if isinstance(schema, list):
        return [shortened(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    types_ = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(types_) == 1:
        schema = types_[0] | {name: value for name, value in schema.items() if name != "anyOf"}
    return {
        name: {key: shortened(one) for key, one in value.items()} if name == "properties" else shortened(value)
        for name, value in schema.items()
        if name not in _LEFT_OUT
    }
