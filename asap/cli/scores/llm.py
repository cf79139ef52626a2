"""``asap llm``: what language models cost."""

from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.output import Form, Plain, print_rows

if TYPE_CHECKING:
    from asap.agents.llm.usage import Usage

app = typer.Typer(no_args_is_help=True, help="Language models: what they cost.")


@app.command()
def cost(
    session: Annotated[str | None, typer.Argument(help="Name of a session; default: all.")] = None,
    format: Form = Plain.TERMINAL,
) -> None:
    """Show the calls, tokens and cost of each run of the agents."""
    from asap.agents.llm.usage import usages
    from asap.sharding_memory import read_session, readable_sessions

    found = [(session, read_session(session))] if session is not None else reversed(list(readable_sessions()))
    runs = [(name, usage) for name, records in found for usage in usages(records)]
    document = [{"session": name, **usage.model_dump()} for name, usage in runs]
    columns = ("session", "model", "calls", "tokens in", "tokens out", "USD", "price from")
    print_rows(format, document, columns, (_cells(name, usage) for name, usage in runs))


def _cells(session: str, used: "Usage") -> tuple[object, ...]:
    money = "unknown" if used.cost is None else used.cost
    return session, used.model, used.calls, used.input_tokens, used.output_tokens, money, used.price_source or ""
