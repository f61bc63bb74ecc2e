"""No Docker engine runs here: the files are read and checked, and their commands and environment started without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from autoxrd.settings import Settings

from .conftest import STUB
from .fleet import COMMAND, Fleet, settled, submit

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("api", "scheduler", "worker", "worker-gsasii")
DOCKERFILES = ("docker/Dockerfile", "docker/Dockerfile.gsasii")


@pytest.mark.parametrize("name", OURS)
def test_no_container_of_ours_has_more_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] == "10001:10001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "ports", "network_mode", "pid"} & set(service)
    assert {"mem_limit", "cpus", "pids_limit"} <= set(service)
    assert service["volumes"] == ["data:/srv/autoxrd"]
    assert all(condition == {"condition": "service_healthy"} for condition in service["depends_on"].values())


def test_what_others_wait_for_has_a_health_check() -> None:
    awaited = {name for service in SERVICES.values() for name in service.get("depends_on", {})}
    assert awaited == {"postgres", "redis", "api"}
    assert all("healthcheck" in SERVICES[name] for name in (*awaited, "nginx"))
    assert all({"mem_limit", "pids_limit"} <= set(service) for service in SERVICES.values())
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["nginx"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert [n for n in (*OURS, "postgres", "redis") if "outside" in SERVICES[n]["networks"]] == ["scheduler"]
    assert set(COMPOSE["volumes"]) == {"database", "data"}


def test_no_secret_stands_in_the_files() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    for line in text.splitlines():
        if re.search(r"password|secret|token", line, re.IGNORECASE) and not line.lstrip().startswith("#"):
            assert "${AUTOXRD_DB_PASSWORD:?" in line, line


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    known = {f"AUTOXRD_{field.upper()}" for field in Settings.model_fields} | {"AUTOXRD_GSASII_PYTHON"}
    assert set(SERVICES[name]["environment"]) <= known


@pytest.mark.parametrize("name", DOCKERFILES)
def test_dockerfiles_are_sound(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    words = [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]
    assert {word for word, _ in words} <= {
        "ARG", "FROM", "WORKDIR", "RUN", "ENV", "COPY", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    for source in (rest.split()[0] for word, rest in words if word == "COPY" and not rest.startswith("--from")):
        assert (ROOT / source).exists(), source
    text = "\n".join(lines)
    assert "curl" not in text
    assert "latest" not in text
    assert all(
        "--require-hashes" in rest or "--no-index" in rest for w, rest in words if w == "RUN" and "pip install" in rest
    )


def test_the_image_runs_as_nobody_in_particular() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert text.index("USER 10001:10001") < text.index("ENTRYPOINT")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"  # only what is named goes into an image
    assert all((ROOT / line[1:]).exists() for line in ignored if line.startswith("!"))


def test_nginx_takes_its_example(tmp_path: Path) -> None:
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        pytest.skip("nginx or openssl is not installed (Debian: nginx-light, openssl)")
    key = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    files = ["-keyout", str(tmp_path / "tls.key"), "-out", str(tmp_path / "tls.crt")]
    subprocess.run([*key, *files], check=True, capture_output=True)
    text = (ROOT / "docker" / "nginx.conf").read_text(encoding="utf-8")
    text = text.replace("server api:8417", "server 127.0.0.1:8417")
    text = re.sub(r"/tmp/|/etc/autoxrd/|/dev/(?=std)", f"{tmp_path}/", text)
    (tmp_path / "nginx.conf").write_text(text)
    command = ["nginx", "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr.replace('[warn] the "user" directive', "")


def compose_environment(name: str, fleet: Fleet) -> dict[str, str]:
    """The environment of a service, with this machine's servers in place of the containers'."""
    inside = {"/srv/autoxrd": str(fleet.folder / "data"), "redis://redis:6379/0": fleet.redis.url}
    found = {}
    for variable, value in SERVICES[name]["environment"].items():
        value = re.sub(r"\$\{AUTOXRD_DB_PASSWORD:[^}]*\}", "unused", value)
        value = re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", value)
        value = inside.get(value, value).replace("@postgres:5432/autoxrd", "@" + fleet.database_url.partition("@")[2])
        found[variable] = value
    return found


def test_the_same_commands_and_environment_work_without_docker(
    fleet: Fleet,
) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("AUTOXRD_")}
    wall = {"AUTOXRD_STEP_HOST": STUB}  # a stub in place of the engine, and one free port: nothing else differs
    for name in ("api", "scheduler", "worker"):
        words = [str(fleet.port) if word == "8417" else word for word in SERVICES[name]["command"]]
        words = ["127.0.0.1" if word == "0.0.0.0" else word for word in words]
        with (fleet.folder / f"{name}.log").open("ab") as log:
            environment = {**outside, **compose_environment(name, fleet), **wall}
            fleet.processes[name] = subprocess.Popen([*COMMAND, *words], env=environment, stdout=log, stderr=log)
    check = [word.replace("8417", str(fleet.port)) for word in SERVICES["api"]["healthcheck"]["test"][1:]]
    deadline = time.monotonic() + 120
    while subprocess.run([sys.executable, *check[1:]], capture_output=True, check=False).returncode != 0:
        assert time.monotonic() < deadline, fleet.log("api")
        time.sleep(0.2)
    made = subprocess.run(
        [*COMMAND, "keys", "create", "ada"],
        env={**outside, **compose_environment("api", fleet)},
        capture_output=True,
        text=True,
        check=True,
    )
    client = fleet.client(made.stdout.strip())
    job = submit(client, '{"budgets": {"steps": 2}}')
    assert settled(client, [job], 120)[job]["state"] == "completed"
    assert isinstance(httpx.get(f"http://127.0.0.1:{fleet.port}/healthz").json()["version"], str)
