"""Reading of uploads and stored corpora with limited memory, outside the process that serves."""
