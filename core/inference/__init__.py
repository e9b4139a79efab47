"""Kernels over one chain: forward-backward, Viterbi, and the vectors they are written in."""
