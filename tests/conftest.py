"""Hypothesis profiles: QNS_HYPOTHESIS=quick, standard (the default), ci or thorough."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = {"quick": 20, "standard": 100, "ci": 1_000, "thorough": 5_000}

for _name, _examples in EXAMPLES.items():
    settings.register_profile(
        _name,
        max_examples=_examples,
        derandomize=False,  # every run tries other examples
        print_blob=True,  # prints what replays a failure
        # A slow machine must not fail a test.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )

# Peers that tests start keep their lineage here, unless their configuration names another place.
os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp(prefix="qns-state-"))

_chosen = os.environ.get("QNS_HYPOTHESIS") or "standard"
if _chosen not in EXAMPLES:
    raise pytest.UsageError(f"QNS_HYPOTHESIS={_chosen}: give one of {', '.join(EXAMPLES)}")
settings.load_profile(_chosen)
