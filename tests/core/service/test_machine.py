"""The memory of a container or control group counts, not that of the machine."""

from pathlib import Path

import pytest

from tagsmith.core.service import machine

GIB = 1 << 30


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"memory.max": "1073741824"}, GIB),
        ("0::/app.slice/tagsmith.service\n", {"app.slice/tagsmith.service/memory.max": "1073741824"}, GIB),
        (
            "0::/app.slice/tagsmith.service\n",
            {"app.slice/tagsmith.service/memory.max": "max", "app.slice/memory.max": "1073741824"},
            GIB,
        ),
        ("4:memory:/a\n3:cpu:/\n", {"memory/a/memory.limit_in_bytes": "1073741824"}, GIB),
        # Outside, the container has a path that it does not see itself.
        ("4:memory:/docker/1f\n", {"memory/memory.limit_in_bytes": "1073741824"}, GIB),
        ("0::/\n", {"memory.max": "max"}, None),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": str(2**63 - 4096)}, None),
        ("", {}, None),
    ],
)
def test_the_lowest_limit_counts(
    tmp_path: Path, own: str, files: dict[str, str], expected: int | None
) -> None:
    (tmp_path / "own").write_text(own)
    for name, content in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    physical = machine.memory_bytes(tmp_path / "none", tmp_path / "nothing")
    assert physical > GIB
    assert machine.memory_bytes(tmp_path / "groups", tmp_path / "own") == (expected or physical)
