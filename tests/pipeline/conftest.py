"""One Spark session for each process that runs tests: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from qns.pipeline.spark.session import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session("local[2]", "qns tests", tmp_path_factory.mktemp("spark")) as opened:
        yield opened
