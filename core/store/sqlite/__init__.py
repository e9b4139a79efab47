"""What only files of SQLite need."""
