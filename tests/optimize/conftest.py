from tests.command_line import run_command
from tests.homes import home

__all__ = ["home", "run_command"]
