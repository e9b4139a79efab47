"""Tools for maintainers: the software bill of materials, and checks of dependencies."""
