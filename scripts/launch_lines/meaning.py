"""What a launcher made of a line, beside what the line means."""


def differences(meant: dict[str, int | str], made: dict[str, int | str]) -> str | None:
    """Where they differ; ``None`` where they do not, as far as both are known."""
    found = [f"{key}={made[key]}, meant {value}" for key, value in meant.items() if made.get(key, value) != value]
    return ", ".join(found) or None
