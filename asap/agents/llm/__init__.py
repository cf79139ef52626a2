"""Language models: names, the built-in one, the client, its limits and its usage.

LiteLLM is kept from fetching its prices from the network, whoever imports it first.
"""

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
