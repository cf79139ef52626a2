"""Parameters of a layer of linear attention: the gated delta net of Qwen3-Next and Qwen3.5 (arXiv:2412.06464)."""


def linear_attention_parameters(
    width: int, key_heads: int, key_dim: int, value_heads: int, value_dim: int, kernel: int
) -> int:
    """Projections, gates and the convolution before them.

    Args:
        width: of the residual stream.
        key_heads, key_dim: heads of queries and keys, and their width.
        value_heads, value_dim: heads of values, and their width.
        kernel: tokens of the convolution.
    """
    keys, values = key_heads * key_dim, value_heads * value_dim
    convolution = (2 * keys + values) * kernel
    return width * (2 * keys + 2 * values + 2 * value_heads) + convolution + values * width
