"""A setting of a stack by its names, and what its values mean."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from asap.stacks.rules import are_said

Meaning = str | int | bool


class Part(BaseModel):
    """Of a table."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_TRUTHS = frozenset(("true", "false", "1", "0", "yes", "no", "on", "off", "none", "null"))


class Word(Part):
    """One setting, and what its values mean; in TOML its key alone, or a table.

    A value is matched without regard to case, after ``pattern`` has taken its first group of it.
    """

    keys: tuple[str, ...] = Field(
        default=(),
        description="names through the releases; the first that is said counts; none: its default always does",
    )
    values: dict[str, Meaning] = Field(default_factory=dict, description="what each word means; none: as it is said")
    default: Meaning | None = Field(default=None, description="meaning where nothing is said")
    pattern: str | None = None
    nothing: tuple[str, ...] = Field(default=(), description="words that say nothing, so that the next name counts")
    other: Meaning | None = Field(default=None, description="meaning of a word that is not among the values")
    open: bool = Field(
        default=False, description="a word that is not among the values says nothing; of a switch, one of truth"
    )
    when: dict[str, str] = Field(default_factory=dict, description="counts only beside settings, as rules have them")

    @model_validator(mode="before")
    @classmethod
    def _key_alone(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"keys": (value,)}
        if isinstance(value, dict) and "key" in value:
            return {"keys": (value["key"],)} | {name: one for name, one in value.items() if name != "key"}
        return value

    @property
    def counts(self) -> bool:
        """Whether its values are taken as they are said."""
        return not self.values and self.pattern is None and self.other is None

    def key(self, settings: Mapping[str, object]) -> str:
        """The name that settings use, else the present one."""
        silent = ("none", *self.nothing)
        return next(
            (key for key in self.keys if str(settings.get(key)).casefold() not in silent), next(iter(self.keys), "")
        )

    def said(self, settings: Mapping[str, object]) -> str | None:
        """The word of the settings, in lower case and without what the pattern drops; ``None`` where it is not said."""
        value = settings.get(self.key(settings))
        several = isinstance(value, dict) or (isinstance(value, list) and not self.pattern)
        if value is None or several or str(value).casefold() in self.nothing:
            return None
        found = re.search(self.pattern, str(value)) if self.pattern else None
        return (found[1] if found else str(value) if not self.pattern else "").casefold() or None

    def meaning(self, settings: Mapping[str, object]) -> Meaning | None:
        """What the settings say; raises ValueError where their word has no meaning."""
        if not are_said(self.when, settings):
            return None
        said = self.said(settings)
        if said is None:
            return self.default
        meanings = {word.casefold(): meaning for word, meaning in self.values.items()}
        if said in meanings or (not meanings and self.other is None):
            return meanings.get(said, said)
        if self.open and self.values.keys() <= _TRUTHS and said not in _TRUTHS:
            raise ValueError("true or false")
        if self.open or self.other is not None:
            return self.default if self.other is None else self.other
        raise ValueError(f"one of {', '.join(self.values)}")


def _one_or_more(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


Words: TypeAlias = Annotated[tuple[Word, ...], BeforeValidator(_one_or_more)]
"""Settings of which the first that is said counts; in TOML one of them, or several."""


def word_keys(*words: Word | None) -> tuple[str, ...]:
    """All names of some words."""
    return tuple(key for word in words if word for key in word.keys)
