"""The decoders handle the inputs that the fuzzer starts from and those that it has found."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.kept import kept
from tests.fuzz.targets import EXPECTED, TARGETS, Target


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_decoder_raises_only_expected_errors_for_kept_inputs(target: Target) -> None:
    inputs = [*target.samples, *kept(target.name)]
    assert inputs
    for data in inputs:
        with suppress(*EXPECTED):
            target.decode(data)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@given(st.data())
def test_decoder_raises_only_expected_errors_for_changed_samples(
    target: Target, data: st.DataObject
) -> None:
    sample = bytearray(data.draw(st.sampled_from(target.samples)))
    start = data.draw(st.integers(0, len(sample)))
    end = data.draw(st.integers(start, min(len(sample), start + 20)))
    sample[start:end] = data.draw(st.binary(max_size=8))
    with suppress(*EXPECTED):
        target.decode(bytes(sample))
