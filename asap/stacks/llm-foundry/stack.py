"""What of LLM Foundry no table says: the width of MPT's MLP (``llmfoundry/models/mpt``)."""

from collections.abc import Mapping

Settings = Mapping[str, object]


def model_fields(settings: Settings) -> dict[str, object]:
    """The width of MPT's MLP."""
    by_ratio = int(float(str(settings.get("model.expansion_ratio", 4))) * int(str(settings["model.d_model"])))
    said = settings.get("model.ffn_config.ffn_hidden_size", settings.get("model.intermediate_size"))
    return {"d_ff": said or by_ratio}
