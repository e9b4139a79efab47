"""The files an operator starts from agree with the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tagsmith.cli.main import main
from tagsmith.core.service.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
VARIABLES = {PREFIX + name.upper() for name in Settings.model_fields}


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8")))


def test_the_compose_file_has_every_part_and_starts_them_in_order() -> None:
    services = compose()["services"]
    assert sorted(services) == ["api", "kernels", "migrate", "postgres", "quick-worker", "redis", "worker"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("api", "worker", "quick-worker"):
        assert services[name]["depends_on"] == {
            "kernels": {"condition": "service_completed_successfully"},
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }
    for name in ("postgres", "redis"):
        assert services[name]["healthcheck"]["test"][0] == "CMD"
    assert all("stop_grace_period" in services[name] for name in ("api", "worker", "postgres", "redis"))


SERVICES = ["api", "kernels", "migrate", "postgres", "quick-worker", "redis", "worker"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_read_only_without_privileges_and_limited(name: str) -> None:
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert not service.get("privileged")
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert 0 < service["pids_limit"] <= 512
    assert any(each.split(":")[0] == "/tmp" for each in service["tmpfs"])
    # The image of the project has a user; those of others begin as root.
    assert service["image"].startswith("tagsmith:") or service["user"] == name


def test_nothing_of_the_machine_is_mounted_and_every_volume_is_declared() -> None:
    found = compose()
    mounts = [each for service in found["services"].values() for each in service.get("volumes", [])]
    assert {each.split(":")[0] for each in mounts} == set(found["volumes"])


def test_kernels_are_where_numba_can_write_and_come_from_the_image() -> None:
    services, image = compose()["services"], (ROOT / "Dockerfile").read_text(encoding="utf-8")
    *_, source, target = services["kernels"]["entrypoint"]
    folder = target.rstrip("/")
    (in_image,) = set(re.findall(r"NUMBA_CACHE_DIR=(\S+)", image))
    assert source == f"{in_image}/."
    for name in ("api", "worker", "quick-worker"):
        assert services[name]["environment"]["NUMBA_CACHE_DIR"] == folder
        assert f"kernels:{folder}" in services[name]["volumes"]
    # A new volume gets the owner of the directory in the image.
    assert re.search(rf"install -d -o tagsmith .* {folder}$", image, re.MULTILINE)


def test_redis_fits_into_its_container() -> None:
    redis = compose()["services"]["redis"]
    assert redis["command"][redis["command"].index("--maxmemory") + 1] == "384mb"
    assert redis["mem_limit"] == "768m"


def test_redis_never_evicts_and_only_the_api_is_reachable_and_from_this_machine_alone() -> None:
    services = compose()["services"]
    command = services["redis"]["command"]
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    published = {name: each["ports"] for name, each in services.items() if "ports" in each}
    assert published == {"api": ["127.0.0.1:${TAGSMITH_PORT:-8765}:8765"]}


def test_several_api_processes_and_workers_run_and_one_worker_is_kept_for_quick_jobs() -> None:
    services = compose()["services"]
    api, worker, quick = (services[name] for name in ("api", "worker", "quick-worker"))
    assert (api["environment"]["TAGSMITH_API_PROCESSES"], api["environment"]["TAGSMITH_WORKERS"]) == (
        "${TAGSMITH_API_PROCESSES:-2}",
        0,
    )
    assert (worker["scale"], quick["scale"]) == (2, 1)
    assert "TAGSMITH_WORKER_QUEUES" not in worker["environment"]
    assert quick["environment"]["TAGSMITH_WORKER_QUEUES"] == "quick"


@pytest.mark.parametrize("service", ["api", "migrate", "worker", "quick-worker"])
def test_each_command_of_the_compose_file_is_one_of_tagsmith(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = compose()["services"][service]["command"]
    assert main([*command, "--help"]) == 0
    assert f"Usage: tagsmith {command[0]}" in capsys.readouterr().out


def test_every_variable_that_compose_and_image_set_is_a_setting() -> None:
    environment = {name for each in compose()["services"].values() for name in each["environment"]}
    environment = {name for name in environment if name.startswith("TAGSMITH_")}
    in_image = set(re.findall(r"\b(TAGSMITH_[A-Z_]+)=", (ROOT / "Dockerfile").read_text(encoding="utf-8")))
    assert {"TAGSMITH_HOST", "TAGSMITH_DATA_DIR"} <= in_image
    assert environment | in_image <= VARIABLES


def test_every_variable_the_readme_names_is_a_setting() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(TAGSMITH_[A-Z_]+)`", readme))
    assert len(named) >= 6
    assert named <= VARIABLES


def test_the_image_runs_as_a_numbered_user_that_is_not_root() -> None:
    users = re.findall(r"^USER (\S+)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert users == ["10001:10001"]


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-otel.txt", "requirements-dev.txt"])
def test_the_lock_pins_everything_with_hashes_and_names_no_host(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9][a-z0-9._-]*==\S+", text, re.MULTILINE)
    entries = re.findall(r"^[a-z0-9].*(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+", text, re.MULTILINE)
    assert len(pins) == len(entries) > 10
    assert "://" not in text
    assert not re.search(r"(?:^|\s)/\w", text)
