"""Multicast: one event along a diffusion tree, in messages, bytes and connections.

The trees are those of the peers' Tree Builder, with the same capability for all. Then the shape
depends only on the number of receivers, so a tree is built once for each number, and receivers take
its places in the order of their names. The bytes are those of the peers' SOAP envelope with one
notification; a peer that has several for one receiver saves some envelopes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from qns.cbr.event import Event
from qns.edl.messages import Entry, Envelope, Notification, Notify
from qns.edl.reachability import Reachability
from qns.edl.tree_builder import diffusion_tree
from qns.soap.codec import text_content
from qns.soap.peer_client import write_call

DIRECT: Final = 0
"""The fan-out that stands for no tree: the producer sends to all receivers itself."""

_TENS: Final = 10 ** np.arange(1, 19)


class Shape(NamedTuple):
    """A tree over the places 0, 1, 2, …; the producer is at -1."""

    parents: Any
    depths: Any
    children: Any
    """The number of children of each place; the producer's is last."""
    descendants: Any
    """The number of places below each place; the producer's is last."""
    most_children: int
    depth_sum: int
    most_depth: int


@lru_cache(maxsize=4096)
def shape_of(receivers: int, fan_out: int) -> Shape:
    """The tree over a number of receivers, which is at least one."""
    parents = [-1] * receivers
    depths = [1] * receivers
    if fan_out != DIRECT:
        root, names = "", [f"{place:09}" for place in range(receivers)]
        capabilities = dict.fromkeys((root, *names), fan_out)
        tree = diffusion_tree(root, names, capabilities, Reachability(root, 1))
        for parent, children_of in tree.items():  # parents come before their children
            for child in children_of if parent != root else ():
                parents[int(child)] = int(parent)
                depths[int(child)] = depths[int(parent)] + 1
    children, descendants = [0] * (receivers + 1), [0] * (receivers + 1)
    for place in sorted(range(receivers), key=depths.__getitem__, reverse=True):
        children[parents[place]] += 1
        descendants[parents[place]] += descendants[place] + 1
    return Shape(
        np.array(parents),
        np.array(depths),
        np.array(children),
        np.array(descendants),
        max(children),
        sum(depths),
        max(depths),
    )


class Sizes:
    """The bytes of the notifications between these organisations."""

    def __init__(self, names: tuple[str, ...]) -> None:
        sample = Entry("", 1, 1, 1, 1)
        alone = len(_call("", _notification("", "", b"", 0, 1, sample)))
        below = Entry("", 1, 1, 1, 1, children=(sample,))
        with_child = len(_call("", _notification("", "", b"", 0, 1, below)))
        with_path = len(_call("", _notification("", "", b"", 0, 1, sample, ("",))))
        self._entry = with_child - alone
        """The size of an entry with an empty receiver name and number 1."""
        self._step = with_path - alone
        self._names = np.array([len(text_content(name).encode()) for name in names], np.int64)

    def head(self, event: Event, xml: bytes, sequence: int) -> int:
        """The size of a notification without sender, path and entries."""
        entry = Entry("", 1, 1, 1, 1)
        notification = _notification(
            event.source, event.id, xml, event.available_s, sequence, entry
        )
        return len(_call("", notification)) - self._entry

    def total(self, head: int, tree: Shape, publisher: int, receivers: Any, numbers: Any) -> int:
        """The size of all notifications of one event.

        `numbers` are the event's numbers in the receivers' streams.
        """
        names = self._names[receivers]
        entries = self._entry + names + np.searchsorted(_TENS, numbers, side="right")
        # An entry is in the notifications to its receiver and to all forwarders before it. The name
        # of a forwarder is in the path of all below it, and is the sender for its children.
        carriers = np.append(names, self._names[publisher])
        return int(
            head * len(names)
            + entries @ tree.depths
            + (carriers + self._step) @ tree.descendants
            + carriers @ tree.children
        )


def _notification(
    source: str,
    event: str,
    xml: bytes,
    remaining_s: float,
    sequence: int,
    entry: Entry,
    path: tuple[str, ...] = (),
) -> Notification:
    return Notification(source, 1, 1, sequence, event, xml, remaining_s, entry, path)


def _call(sender: str, notification: Notification) -> bytes:
    return write_call(Envelope(sender, 1, (), Notify((notification,))))[0]
