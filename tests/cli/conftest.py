from tests.command_line import asap, run_command

__all__ = ["asap", "run_command"]
