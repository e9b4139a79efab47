"""The engine of `--local`: train, tag, evaluate and explain on files, without a server."""
