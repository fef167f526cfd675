import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def replay():
    """The recorder of tests/replay.py, loaded by path."""
    path = Path(__file__).parents[1] / "replay.py"
    spec = importlib.util.spec_from_file_location("replay", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
