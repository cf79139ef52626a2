from tests.experiments.stack_configurations import read

__all__ = ["read"]
