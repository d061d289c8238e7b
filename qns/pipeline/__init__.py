"""The data pipeline: savings and matching at any scale on Spark, with the peers' routing core.

It needs libraries that a peer does not need. Importing it raises QnsError if they are missing.
"""

from importlib.util import find_spec

from qns.errors import QnsError

if _missing := [name for name in ("numpy", "pyarrow", "pyspark") if find_spec(name) is None]:
    raise QnsError(
        f"{_missing[0]} is not installed",
        remedy='pip install "qns[spark]", in a checkout ".[spark]"',
    )
