"""Answers on FLOP/s and MFU: how they are counted, what the run reaches, what it could."""
