"""Kernels for one chain: forward-backward, Viterbi, k-best decoding, constraints."""
