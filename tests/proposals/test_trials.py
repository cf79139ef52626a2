from asap.proposals.trials import OfferedTrial


def test_a_line_for_megatron_separates_what_an_option_takes_by_spaces():
    settings = {"cuda-graph-impl": "transformer_engine", "cuda-graph-modules": "attn moe_router"}
    trial = OfferedTrial(name="cuda_graphs", statement="", source="", stack="megatron", settings=settings)
    assert trial.line == "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router"
