"""What a run's flags are for, which are missing for what it does, and which do harm."""

from collections.abc import Iterable, Mapping

from asap.core.text import plain
from asap.flags.document import FlagAdvice, FlagReview, SetFlag, shown
from asap.flags.environment import GivenFlag, contradictions, flags_in, misplaced, same_value
from asap.flags.situation import Situation
from asap.flags.table import FlagTable, Judgement, Missing, Unwise, flag_tables

_LAYER = "{layer_bytes}"


def review_flags(environment: Mapping[str, str], situation: Situation) -> FlagReview:
    """Judge the flags on record.

    Args:
        environment: variables on record.
        situation: what runs, or would run.
    """
    given = flags_in(environment)
    values = {flag.name: flag.value for flag in given}
    tables = [table for table in flag_tables() if table.runtime in (None, situation.runtime)]
    judged = tables if situation.runtime else flag_tables()
    return FlagReview(
        on_record=bool(given),
        set=tuple(_set(flag) for flag in {flag.name: flag for flag in given}.values()),
        missing=tuple(
            advice
            for table in tables
            for entry in table.missing
            if _applies(entry, situation) and (advice := _missing(entry, table, values, situation))
        ),
        unwise=(*misplaced(given), *contradictions(given), *_unwise(judged, values, situation)),
    )


def causes_set(environment: Mapping[str, str]) -> dict[str, str]:
    """Causes of a slow step that variables on record set themselves, each with these, as ``NAME=value``."""
    values = {flag.name: flag.value for flag in flags_in(environment)}
    entries = [entry for table in flag_tables() for entry in table.unwise if entry.cause]
    matched = [(entry.cause, _matched(entry, values)) for entry in entries]
    return {str(cause): _listed(found) for cause, found in matched if found}


def _listed(flags: Mapping[str, str]) -> str:
    return " and ".join(f"{name}={value}" for name, value in flags.items())


def _set(flag: GivenFlag) -> SetFlag:
    purposes = (table.purposes.get(flag.name) for table in flag_tables() if table.variable == flag.variable)
    return SetFlag(
        name=plain(flag.name, 120),
        value=plain(flag.value, 120),
        variable=flag.variable,
        purpose=next(filter(None, purposes), None),
    )


def _applies(entry: Judgement, situation: Situation) -> bool:
    chip, needs = situation.chip, situation.needs
    return (
        entry.runtime in (None, situation.runtime)
        and (not entry.chips or (chip is not None and chip.name in entry.chips))
        and (not entry.stacks or situation.stack in entry.stacks)
        and needs.issuperset(entry.needs)
        and needs.isdisjoint(entry.without)
    )


def _missing(entry: Missing, table: FlagTable, values: Mapping[str, str], situation: Situation) -> FlagAdvice | None:
    if values.keys() & set(entry.unless or entry.set):
        return None
    layer = situation.layer_bytes
    if layer is None and _LAYER in entry.set.values():
        return None
    flags = {name: value.replace(_LAYER, str(layer)) for name, value in entry.set.items()}
    absent = {name: value for name, value in flags.items() if name not in values}
    return FlagAdvice(
        kind="missing",
        title=entry.title,
        flags=absent,
        variable=table.variable,
        reason=entry.reason,
        source=table.sources[entry.source],
    )


def _unwise(tables: Iterable[FlagTable], values: Mapping[str, str], situation: Situation) -> Iterable[FlagAdvice]:
    for table in tables:
        for entry in table.unwise:
            if _applies(entry, situation) and (found := _matched(entry, values)):
                yield FlagAdvice(
                    kind=entry.kind,
                    title=_listed(found),
                    flags=found,
                    variable=table.variable,
                    reason=entry.reason,
                    source=table.sources[entry.source],
                )


def _matched(entry: Unwise, values: Mapping[str, str]) -> dict[str, str]:
    if entry.any_of:
        return shown({name: values[name] for name in entry.any_of if name in values})
    whole = all(name in values and same_value(values[name], value) for name, value in entry.set.items())
    return shown({name: values[name] for name in entry.set}) if whole else {}
