"""Keys: who may call, and what for."""
