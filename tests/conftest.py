"""How hard Hypothesis tries: QNS_HYPOTHESIS=quick, ci (the default) or thorough."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = {"quick": 20, "ci": 1_000, "thorough": 5_000}

for _name, _examples in EXAMPLES.items():
    settings.register_profile(
        _name,
        max_examples=_examples,
        derandomize=False,  # every run looks elsewhere …
        print_blob=True,  # … and prints what replays a failure
        # A slow or busy machine is not a fault of the code under test.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )

_chosen = os.environ.get("QNS_HYPOTHESIS") or "ci"
if _chosen not in EXAMPLES:
    raise pytest.UsageError(f"QNS_HYPOTHESIS={_chosen}: give one of {', '.join(EXAMPLES)}")
settings.load_profile(_chosen)
