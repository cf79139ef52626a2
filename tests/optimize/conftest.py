from tests.homes import home

__all__ = ["home"]
