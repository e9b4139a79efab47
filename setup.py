"""Install the folders of the repository under one name: `core/` as `tagsmith.core`, `app/` as `tagsmith.app` and so on.

Everything else about the package is in pyproject.toml, which cannot express this (docs/decisions/0020).
"""

from setuptools import find_namespace_packages, setup

FOLDERS = ("app", "core", "migrations", "worker")


def packages_in(folder: str) -> list[str]:
    return find_namespace_packages(include=[folder, f"{folder}.*"], exclude=["*.__pycache__*", "*.static*"])


# `make` puts links to the folders into `tagsmith/`, for type checkers and editors. They are not packages of their own.
own = [
    name for name in packages_in("tagsmith") if name.split(".")[1:2] not in [[folder] for folder in FOLDERS]
]

setup(
    packages=own + [f"tagsmith.{name}" for folder in FOLDERS for name in packages_in(folder)],
    package_dir={f"tagsmith.{folder}": folder for folder in FOLDERS},
)
