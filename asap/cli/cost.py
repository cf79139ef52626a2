"""``asap cost``: what runs have used of a language model."""

from typing import Annotated

import typer

from asap.cli.output import Plain, print_json, print_table


def cost(
    session: Annotated[str | None, typer.Argument(help="Name of a session; all of them by default.")] = None,
    format: Annotated[Plain, typer.Option(help="How to print.")] = Plain.TERMINAL,
) -> None:
    """Show the calls, tokens and money of each run of the agents."""
    from asap.agents.usage import usages
    from asap.sharding_memory import read_session, sessions

    names = [session] if session is not None else sessions()
    runs = [(name, usage) for name in names for usage in usages(read_session(name))]
    if format is Plain.JSON:
        print_json([{"session": name, **usage.model_dump()} for name, usage in runs])
        return
    rows = (
        (
            name,
            used.model,
            used.calls,
            used.input_tokens,
            used.output_tokens,
            _money(used.cost),
            used.price_source or "",
        )
        for name, used in runs
    )
    print_table(("session", "model", "calls", "tokens in", "tokens out", "USD", "price by"), rows)


def _money(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.4f}"
