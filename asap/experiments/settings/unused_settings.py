"""Settings that change time or memory and that the prediction does not use: said, never ignored."""

from collections.abc import Mapping

from asap.core.text import plain

_OFF = ("", "0", "0.0", "false", "none", "null", "[]", "{}", "auto")


def note_on_unused(settings: Mapping[str, object], usual: Mapping[str, object]) -> tuple[str, ...]:
    """One note that names them all; none where all are as the prediction takes them.

    Args:
        settings: by the name that the stack has.
        usual: what each is under the prediction; ``False`` stands for anything that is off.
    """
    found = [key for key, value in usual.items() if key in settings and _differs(settings[key], value)]
    shown = (key if settings[key] is True else f"{key}={plain(settings[key], 40)}" for key in found)
    return (f"the prediction does not use {', '.join(shown)}",) if found else ()


def _differs(said: object, usual: object) -> bool:
    text = str(said).casefold()
    if text in _OFF and (usual is False or text in ("none", "null", "auto", "")):
        return False
    try:
        return float(text) != float(str(usual))
    except ValueError:
        return usual is False or text != str(usual).casefold()
