"""The unit file and the container file of a peer."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from qns.runtime.server import MOST_CONNECTIONS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "services" / "peer"
UNIT = (FOLDER / "qns-peer@.service").read_text("utf-8")
CONTAINER = (FOLDER / "Containerfile").read_text("utf-8")
MOST_EXPOSED = 2.0
"""The exposure level of systemd-analyze, from 0 to 10; services below 2 count as well protected."""


def settings(name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Returns one instance of the unit; the command is one that exists on every computer."""
    path = tmp_path / "qns-peer@inps.service"
    path.write_text(UNIT.replace("/opt/qns/bin/qns", "/bin/true"), "utf-8")
    return path


def analyzer() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze is not installed")
    return found


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_two_instances_share_no_folder() -> None:
    (folders,) = settings("StateDirectory")
    folder, lineage = folders.split()
    assert "%i" in folder
    assert "%i" in lineage
    assert settings("WorkingDirectory") == [f"%S/{folder}"]
    assert settings("Environment") == [f"XDG_STATE_HOME=%S/{lineage}"]


def test_container_keeps_the_lineage_in_another_volume_than_the_store() -> None:
    volumes = re.findall(r"^VOLUME (.*)$", CONTAINER, re.M)[0].split()
    assert re.findall(r"^ENV XDG_STATE_HOME=(.*)$", CONTAINER, re.M) == volumes[1:]


def test_failed_check_does_not_keep_the_peer_from_starting() -> None:
    """With a full disk the check fails, and the peer must run so that the disk can be drained."""
    (check,) = settings("ExecStartPre")
    assert check.startswith("-")
    assert check.endswith("peer check /etc/qns/%i.toml")


def test_unit_waits_for_ready_reloads_and_watches() -> None:
    assert settings("Type") == ["notify"]
    assert settings("ExecReload") == ["/bin/kill -HUP $MAINPID"]
    assert int(settings("WatchdogSec")[0]) >= 30
    assert int(settings("LimitNOFILE")[0]) > MOST_CONNECTIONS + 256


def test_systemd_accepts_the_unit(unit: Path) -> None:
    checked = run(analyzer(), "verify", str(unit))
    assert checked.returncode == 0, checked.stderr
    assert "qns-peer" not in checked.stderr


def test_unit_is_hardened(unit: Path) -> None:
    checked = run(analyzer(), "security", "--offline=true", "--no-pager", str(unit))
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", checked.stdout)
    assert level is not None, checked.stdout + checked.stderr
    assert float(level[1]) < MOST_EXPOSED


# --- the container --------------------------------------------------------------------------------


def test_container_file_copies_only_what_exists_and_no_tests() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINER, re.MULTILINE)
    sources = [source for line in copied for source in line.split()]
    assert "qns" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
    assert not {".", "tests", "benchmarks", "docs"} & set(sources)


def test_image_has_the_locked_core_without_the_build_tools() -> None:
    first, last = CONTAINER.split("FROM ")[1:]
    assert "AS build" in first
    assert "--require-hashes -r constraints/core.txt" in first
    assert "COPY --from=build /opt/qns /opt/qns" in last
    assert "pip install" not in last
    removed = first.partition("pip uninstall --yes")[2].replace("\\", " ").split()
    lock = (ROOT / "constraints" / "core.txt").read_text("utf-8")
    for name in removed:
        assert name == "pip" or f"\n{name}==" in lock, f"{name} is not in the lock any more"


def test_image_runs_as_an_unprivileged_user_with_a_health_check() -> None:
    last = CONTAINER.split("FROM ")[-1]
    assert re.search(r"^USER \d{5}$", last, re.MULTILINE)
    assert '"qns", "peer", "status", "peer.toml"' in last
    assert "STOPSIGNAL SIGTERM" in last
