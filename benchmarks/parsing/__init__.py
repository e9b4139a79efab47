"""Dependency parsers: quality, speed and cost beside UDPipe, on four treebanks."""
