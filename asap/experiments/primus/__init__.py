"""Primus, AMD's launcher of Megatron-LM, torchtitan and MaxText."""
