DECODER = """
base_emb_dim: 4096
base_num_query_heads: 32
base_num_kv_heads: 8
base_mlp_dim: 14336
base_num_decoder_layers: 32
head_dim: 128
vocab_size: 128256
per_device_batch_size: 2
max_target_length: 8192
remat_policy: full
"""
"""A configuration of MaxText without a mesh."""
