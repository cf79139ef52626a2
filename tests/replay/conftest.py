from tests.command_line import run_command
from tests.language_models.fixtures import home, log, shared_home, store, studies

__all__ = ["home", "log", "run_command", "shared_home", "store", "studies"]
