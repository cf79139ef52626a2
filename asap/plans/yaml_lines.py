"""Settings as YAML to write over those of a configuration."""

from collections.abc import Mapping


def yaml_lines(settings: Mapping[str, str]) -> str:
    """Settings by dotted key, a section a line: ``parallelism: {tp: 4}``; those without a section on their own."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for key, value in settings.items():
        section, dot, name = key.partition(".")
        if dot:
            sections.setdefault(section, []).append(f"{name}: {value}")
        else:
            lines.append(f"{key}: {value}")
    return "\n".join([*lines, *(f"{section}: {{{', '.join(terms)}}}" for section, terms in sections.items())])
