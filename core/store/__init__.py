"""The SQL truth: tables, the engine, and one module of functions for each thing that is stored."""
