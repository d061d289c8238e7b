"""Libraries of the extras: loaded only by the commands that need them, and named if missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import ROOT


def run_python(script: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, cwd=ROOT, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "libraries"),
    [
        (["lab", "--help"], {"matplotlib", "networkx", "rtree"}),
        (["--help"], {"pyspark", "pyarrow", "pandas", "matplotlib"}),
    ],
    ids=["lab", "spark"],
)
def test_help_does_not_import_the_libraries_of_an_extra(
    arguments: list[str], libraries: set[str]
) -> None:
    done = run_python(
        f"import sys; from qns.cli.main import main; main({arguments}); "
        f"print({libraries} & {{*sys.modules}})"
    )
    assert (done.stdout.splitlines()[-1], done.stderr) == (b"set()", b"")


@pytest.mark.parametrize(
    ("arguments", "library", "extra"),
    [
        (["lab", "all", "--out", "/no/out"], "matplotlib", "lab"),
        (["savings", "--out", "/no/out"], "pyspark", "spark"),
    ],
    ids=["lab", "savings"],
)
def test_missing_library_is_reported_with_a_remedy(
    arguments: list[str], library: str, extra: str
) -> None:
    done = run_python(
        "import importlib.util as u; found = u.find_spec\n"
        f"u.find_spec = lambda name, *rest: None if name == {library!r} else found(name, *rest)\n"
        f"from qns.cli.main import main\nraise SystemExit(main({arguments}))\n"
    )
    assert done.returncode == 2
    remedy = f'(pip install "qns[{extra}]", in a checkout ".[{extra}]")'
    assert done.stderr.decode() == f"qns: error: {library} is not installed {remedy}\n"
