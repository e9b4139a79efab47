"""Kernels that scan the lines of formats, apart from the formats: an edit there does not recompile them."""
