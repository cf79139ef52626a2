from tests.language_models.fixtures import home, log, shared_home, store, studies

__all__ = ["home", "log", "shared_home", "store", "studies"]
