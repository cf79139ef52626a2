"""A change beside the plan as it is typed: settings and options of the launcher, flags, variables of the shell."""

import re
import shlex

from asap.core.errors import PlanError, UsageError
from asap.core.text import plain
from asap.proposals.proposal import Overrides
from asap.stacks.registry import contracts

_SETTING = re.compile(r"(?:--)?[A-Za-z_][\w.-]{0,120}=[\w.,:/+=-]{1,200}", re.ASCII)
_OPTION = re.compile(r"--[A-Za-z][\w.-]{0,120}", re.ASCII)
_VALUE = re.compile(r"[\w.,:/+][\w.,:/+-]{0,200}", re.ASCII)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+=", re.ASCII)
_XLA, _NOT_OF_TPU = ("xla_", "--xla_"), ("xla_gpu_", "xla_cpu_")


def read_typed(text: str) -> str:
    """The words of a change, one blank between them; nothing in them means anything to a shell.

    Raises:
        UsageError: it is no setting, option, flag or variable, as a change of the code is none.
    """
    words, after_option = text.split(), False
    for word in words:
        option = _OPTION.fullmatch(word) is not None
        if not (option or _SETTING.fullmatch(word) or (after_option and _VALUE.fullmatch(word))):
            hint = "key=value, --option value, xla_flag=value or VARIABLE=value"
            reason = f"{plain(word, 60)!r} is nothing that a launcher can be told"
            raise UsageError(reason, where=plain(text, 80), hint=hint)
        after_option = option
    if not words:
        raise UsageError("is empty", where="an idea", hint="key=value, --option value, xla_flag=value, VARIABLE=value")
    return " ".join(words)


def typed_or_none(text: str) -> str | None:
    """The words of a change that can be typed; ``None`` of one that is only described."""
    try:
        return read_typed(text)
    except UsageError:
        return None


def is_flag(typed: str) -> bool:
    """Whether a change is of flags and variables alone."""
    return all(word.startswith(_XLA) or _VARIABLE.match(word) for word in typed.split())


def add_typed_change(overrides: Overrides, typed: str) -> Overrides:
    """What to paste, with a change: its flags and variables as exports, the rest before the launcher's own words.

    Raises:
        PlanError: the launcher takes a file, in which a single word has no place.
    """
    words = typed.split()
    flags = [word.removeprefix("--") for word in words if word.startswith(_XLA)]
    of_tpu = any(flag.startswith("xla_tpu_") for flag in flags)
    exports = [_export(word) for word in words if _VARIABLE.match(word)]
    exports += [_flag(flag, of_tpu and not flag.startswith(_NOT_OF_TPU)) for flag in flags]
    rest = [word for word in words if not (word.startswith(_XLA) or _VARIABLE.match(word))]
    text = overrides.text
    if rest and (not contracts()[overrides.stack].one_line or "\n" in text or (text and text[:1] in "{[")):
        raise PlanError(f"{plain(rest[0], 60)}: this launcher takes a file, so only flags and variables can be added")
    whole = " ".join([*rest, text]).strip()
    return Overrides(stack=overrides.stack, text=whole, exports=(*overrides.exports, *exports))


def _export(word: str) -> str:
    name, _, value = word.partition("=")
    return f"export {name}={shlex.quote(value)}"


def _flag(flag: str, of_tpu: bool) -> str:
    """Libtpu reads flags of its own, those beside them too; XLA ends at one that it does not know."""
    variable = "LIBTPU_INIT_ARGS" if of_tpu else "XLA_FLAGS"
    return f'export {variable}="${variable} --{flag}"'
