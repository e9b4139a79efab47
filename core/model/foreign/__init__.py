"""Readers of model files of other programs. The converted model tags like the original."""
