"""The SQL store: tables, the engine, and one module of functions per stored resource."""
