"""Layers: the two layers implement the protocols through which they use each other.

mypy checks the annotated assignments (`mypy tests/peer`); the second test compares the methods and
their parameters at run time.
"""

from __future__ import annotations

import inspect

import pytest

from qns.edl.layer import ExternalDiffusionLayer
from qns.iil.layer import InternalInterfaceLayer
from qns.peer.layers import DeliverySink, Interest
from tests.edl.peers import federation, lone_gateway


def methods_of(protocol: type) -> list[str]:
    """Returns the names of the methods that a protocol declares."""
    functions = inspect.getmembers(protocol, inspect.isfunction)
    return [name for name, _ in functions if not name.startswith("_")]


def test_layers_of_a_peer_implement_the_protocols() -> None:
    peer = lone_gateway(federation("P", "C")).peer
    sink: DeliverySink = peer.iil
    interest: Interest = peer.edl
    assert peer.edl.consumer.sink is sink
    assert [view.producer for view in interest.views()] == ["C"]


@pytest.mark.parametrize(
    ("protocol", "layer"),
    [(DeliverySink, InternalInterfaceLayer), (Interest, ExternalDiffusionLayer)],
    ids=["DeliverySink", "Interest"],
)
def test_layer_has_every_method_of_its_protocol_with_the_same_parameters(
    protocol: type, layer: type
) -> None:
    methods = methods_of(protocol)
    assert methods
    for name in methods:
        expected = inspect.signature(getattr(protocol, name)).parameters
        assert inspect.signature(getattr(layer, name)).parameters == expected, name
