from tests.command_line import asap, indexed_home, run_command

__all__ = ["asap", "indexed_home", "run_command"]
