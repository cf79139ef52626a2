import os
import socket
import subprocess
import sys

import pytest

SCRIPT = """
from asap.agents.llm.usage import price_of
from asap.agents.settings import Settings
print(price_of("gemini-2.5-flash", Settings())[1])
"""


@pytest.mark.process
def test_prices_are_read_without_the_network():
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM_")}
        environment = kept | {"HTTPS_PROXY": address, "HTTP_PROXY": address, "NO_PROXY": ""}
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
        proxy.settimeout(0)
        with pytest.raises(BlockingIOError):
            proxy.accept()
    assert done.stdout.strip() == "LiteLLM's price list"
