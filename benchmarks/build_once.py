"""Builds a compiled index in a process of its own and prints time and memory as JSON.

    python -m benchmarks.build_once 100000

It builds first without the garbage collector, like all benchmarks, then with it, as a server does.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from typing import Any

from benchmarks import workload
from benchmarks.machine import resident_bytes
from qns.cbr.index.compiled import CompiledIndex


def build(size: int) -> dict[str, Any]:
    gc.disable()
    subscriptions = workload.subscriptions(size)
    CompiledIndex({0: subscriptions[0]})  # numba loads its cache
    before = resident_bytes()
    start = time.process_time()
    index = CompiledIndex(subscriptions)
    seconds = time.process_time() - start
    after = resident_bytes()
    array_bytes = index.memory_bytes
    del index
    gc.enable()
    start = time.process_time()
    CompiledIndex(subscriptions)
    return {
        "size": size,
        "seconds": seconds,
        "seconds_with_collector": time.process_time() - start,
        "array_bytes": array_bytes,
        "resident_bytes": None if before is None or after is None else after - before,
    }


if __name__ == "__main__":
    print(json.dumps(build(int(sys.argv[1]))))
