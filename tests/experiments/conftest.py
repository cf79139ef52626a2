from pathlib import Path

import pytest

from tests.experiments.stack_configurations import read

__all__ = ["read"]


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes, name: str = "train.log") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write
