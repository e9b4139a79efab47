"""The sparse model: its file, tagging, decoding and inspection."""
