"""What a stack refuses, needs or has to give up under a plan beside its settings: rows of its table."""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from asap.core.text import plain
from asap.plans.axes import AXES
from asap.plans.degrees import micro_batch
from asap.plans.plan import Plan
from asap.plans.remat import RecomputedLayers, RecomputedModules, recomputes_layers

Facts: TypeAlias = Mapping[str, int | frozenset[str] | None]
"""Of a plan: its degrees and numbers, and words; ``ahead``: how many microbatches there are more than stages."""
Settings: TypeAlias = Mapping[str, object]
_TERM = re.compile(r"(!?)([\w|]+)(?:([<>=])(-?[\w|]+))?")
_NAMED = re.compile(r"\{([\w.]+)\}")
_OFF = ("", "0", "none", "null", "false")


class Rule(BaseModel):
    """What holds under some plans beside some settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: str = Field(default="", description="terms that hold of it: stage>1, !remat=full, model|seq>1 (one of both)")
    beside: dict[str, str] = Field(
        default_factory=dict,
        description="setting (a|b: one of both; a.: of a section) → on, off, said (or a part), unsaid, or its pattern",
    )
    refuses: str = Field(default="", description="why the stack does not run it, with {names} of facts and settings")
    sets: dict[str, str | bool | int] = Field(
        default_factory=dict, description="settings that it needs, or stands for; {name}: as another one is said"
    )
    drops: tuple[str, ...] = Field(default=(), description="settings that it has to do without")
    notes: str = Field(default="", description="what a reader should know, with {names} likewise")

    @field_validator("plan")
    @classmethod
    def _has_terms(cls, text: str) -> str:
        if wrong := [term for term in text.split() if _TERM.fullmatch(term) is None]:
            raise ValueError(f"is no term: {wrong[0]}")
        return text

    def holds(self, facts: Facts, settings: Settings) -> bool:
        """Whether it is of this plan and these settings; without facts of a plan, of rules that need none."""
        return all(
            facts and any(_compared(facts[name], sign, words) for name in names) != negated
            for names, sign, words, negated in _terms(self.plan)
        ) and are_said(self.beside, settings)


@lru_cache(maxsize=4)
def facts_of(plan: Plan, global_batch: int | None = None, layout: str = "") -> Facts:
    """A plan for the terms of rules; ``layout`` is that of the parameters as they lie now."""
    remat = {plan.remat.value} if plan.remat else set[str]()
    remat |= {*plan.remat.modules} if isinstance(plan.remat, RecomputedModules) else set()
    remat |= {"share"} if isinstance(plan.remat, RecomputedLayers) else set()
    ahead = None if plan.microbatches is None else plan.microbatches - plan.degree("stage")
    return {
        **{axis: plan.degree(axis) for axis in AXES},
        "microbatches": plan.microbatches,
        "ahead": ahead,
        "repeats": plan.pipeline_repeats,
        "each": micro_batch(plan, global_batch),
        "policy": frozenset(filter(None, [plan.remat and plan.remat.value])),
        "offload": frozenset(plan.offload),
        "moments": frozenset(name for name in ("first_moment", "second_moment") if getattr(plan, name)),
        "remat": frozenset(remat | ({"layers"} if recomputes_layers(plan.remat) else set())),
        "layout": frozenset((layout,)),
    }


def refusals(rules: tuple[Rule, ...], facts: Facts, settings: Settings) -> Iterator[str]:
    """Why a stack does not run a plan beside its settings."""
    return (_filled(rule.refuses, facts, settings) for rule in rules if rule.refuses and rule.holds(facts, settings))


def notes(rules: tuple[Rule, ...], facts: Facts, settings: Settings) -> Iterator[str]:
    """What a reader should know of a plan beside its settings."""
    return (_filled(rule.notes, facts, settings) for rule in rules if rule.notes and rule.holds(facts, settings))


def needed(rules: tuple[Rule, ...], facts: Facts, settings: Settings) -> dict[str, str]:
    """Settings that a plan needs beside those that say it."""
    holding = (rule for rule in rules if rule.sets and rule.holds(facts, settings))
    return {key: str(value) for rule in holding for key, value in rule.sets.items()}


def meant(rules: tuple[Rule, ...], settings: Settings) -> dict[str, object]:
    """What settings stand for under other names; a later rule sees, and overrules, what those before it say."""
    found: dict[str, object] = {}
    for rule in rules:
        if rule.holds({}, said := {**settings, **found}):
            named = {key: _NAMED.fullmatch(str(value)) for key, value in rule.sets.items()}
            found |= {key: said.get(one[1]) if (one := named[key]) else value for key, value in rule.sets.items()}
    return found


def drop_implied(rules: tuple[Rule, ...], settings: Settings) -> dict[str, object]:
    """Settings on record without those that others of them stand for, so that they follow when these change."""
    found = dict(settings)
    for rule in reversed(rules):
        said = {key: value for key, value in found.items() if key not in rule.sets}
        stood_for = meant((rule,), said)
        found = said if stood_for and stood_for.items() <= found.items() else found
    return found


def dropped(rules: tuple[Rule, ...], facts: Facts, settings: Settings) -> tuple[str, ...]:
    """Settings that a plan has to do without."""
    return tuple(key for rule in rules if rule.drops and rule.holds(facts, settings) for key in rule.drops)


def are_said(beside: Mapping[str, str], settings: Settings) -> bool:
    """Whether settings say what a row asks of them."""
    return all(_is_said(settings, keys.split("|"), how) for keys, how in beside.items())


def _filled(text: str, facts: Facts, settings: Settings) -> str:
    def shown(found: re.Match[str]) -> str:
        said = facts.get(found[1], settings.get(found[1]))
        return ", ".join(said) if isinstance(said, frozenset) else plain(str(said), 40)

    return _NAMED.sub(shown, text)


@cache
def _terms(text: str) -> tuple[tuple[list[str], str, list[str], bool], ...]:
    """Of each term its names, the comparison, the words or the number that it compares with, whether it is negated."""
    found = (_TERM.fullmatch(term) for term in text.split())
    return tuple((one[2].split("|"), one[3] or "", (one[4] or "").split("|"), bool(one[1])) for one in found if one)


def _compared(fact: int | frozenset[str] | None, sign: str, words: list[str]) -> bool:
    if not isinstance(fact, int):
        return bool(fact) and (not sign or not fact.isdisjoint(words))
    number = int(words[0])
    return fact > number if sign == ">" else fact < number if sign == "<" else fact == number


def _is_said(settings: Settings, keys: list[str], how: str) -> bool:
    asked = how in ("said", "unsaid")
    said = [str(value).casefold() for value in map(settings.get, keys) if value not in (None, [], {})]
    sections = tuple(key for key in keys if key.endswith((".", "_")))
    sections += tuple(f"{key}." for key in keys) if asked and not said else ()
    if sections:
        within = (value for key, value in settings.items() if key.startswith(sections))
        said += [str(value).casefold() for value in within if value is not None]
    if asked:
        return bool(said) == (how == "said")
    if how in ("on", "off"):
        return any(value not in _OFF for value in said) == (how == "on")
    return any(re.fullmatch(how, value) for value in said or [""])
