from tests.language_models.fixtures import home, log, store, studies

__all__ = ["home", "log", "store", "studies"]
