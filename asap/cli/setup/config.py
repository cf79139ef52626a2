"""``asap config``: the settings of the agents."""

from typing import Annotated

import typer

from asap.cli.shared.output import Plain, print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Show and set the settings of the agents.")


@app.command()
def show(format: Annotated[Plain, typer.Option(help="Output format.")] = Plain.TERMINAL) -> None:
    """Show each setting, its value and where it comes from."""
    from asap.agents.settings import Settings
    from asap.agents.settings_sources import origin_of, read_settings

    settings = read_settings()
    if format is Plain.JSON:
        print_json(settings)
        return
    fields = Settings.model_fields.items()
    rows = ((name, getattr(settings, name), origin_of(name), field.description or "") for name, field in fields)
    print_table(("setting", "value", "from", "meaning"), rows)


@app.command("set")
def set_value(
    name: Annotated[
        str, typer.Argument(help="A setting, as `asap config show` lists it; retries.attempts for one in it.")
    ],
    value: Annotated[str, typer.Argument(help="Its value.")],
) -> None:
    """Set a value in the user's file. The rest of the file stays as it is."""
    from asap.agents.settings_file import set_setting

    print(f"{name} set in {set_setting(name, value)}")


@app.command()
def path() -> None:
    """Show the files that settings are read from. The first that exists counts."""
    from asap.agents.settings_sources import setting_files

    rows = (
        (file, "is read" if read else "exists" if file.is_file() else "does not exist")
        for file, read in setting_files()
    )
    print_table(("file", "state"), rows)
