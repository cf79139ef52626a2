"""A plan in a YAML of Primus: the settings of its backend, below ``overrides`` of the module that trains."""

from collections.abc import Mapping

from asap.plans.yaml_lines import yaml_lines

MODULE = "primus_module"
"""Among a run's settings: the module of the YAML that trains."""


def is_primus(settings: Mapping[str, object] | None) -> bool:
    """Whether Primus starts the run."""
    return bool(settings) and MODULE in (settings or {})


def lines_to_paste(changed: Mapping[str, str | bool | None], settings: Mapping[str, object]) -> str:
    """Settings as YAML, with the place that they belong to; ``None`` takes a setting back."""
    if not changed:
        return ""
    lines = yaml_lines({key: _text(value) for key, value in changed.items()})
    return f"# below modules: {settings[MODULE]}: overrides:\n{lines}"


def _text(value: str | bool | None) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else value
