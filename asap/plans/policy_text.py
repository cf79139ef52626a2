"""A policy of rematerialisation that a plan says in words of its own, beside those that have a name."""

from abc import ABC, abstractmethod
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class PolicyText(ABC):
    """A policy with a text form, which is also its JSON."""

    @property
    @abstractmethod
    def value(self) -> str:
        """The text of a plan, like that of a named policy."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Read the text form.

        Raises:
            ValueError: it is no such policy.
        """

    def __str__(self) -> str:
        return self.value

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.no_info_after_validator_function(cls.parse, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), text]),
            serialization=core_schema.to_string_ser_schema(when_used="always"),
        )
