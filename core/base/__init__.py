"""Shared by all layers: kernel compilation, SIMD vectors, arrays, errors, flat files."""
