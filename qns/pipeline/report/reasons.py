"""Reasons: what each parameter of a generated workload is, and why its default is what it is.

The thesis says what is Zipf and what is uniform, no more. What it leaves open is called an
assumption here, and the sensitivity table shows what another value does.
"""

from __future__ import annotations

from typing import Final

PARAMETERS: Final[dict[str, tuple[str, str]]] = {
    "constrained": (
        "chance that a data property of the class, or of a class that encloses it, is constrained",
        "assumption: as often as not",
    ),
    "quality_constrained": (
        "the same for each quality dimension of the class's own properties",
        "assumption: one of the four dimensions of a property on average",
    ),
    "zipf": (
        "exponent with which the values of an attribute are popular (0: all alike)",
        "the thesis says Zipf without an exponent; 1 is Zipf's own law",
    ),
    "class_zipf": (
        "the same for the classes, in the order of the schema",
        "the thesis says Zipf of attributes only, so all classes are asked for alike",
    ),
    "equality": (
        "share of the constraints on numbers, dates and qualities that ask for one value",
        "assumption: =, ≤, ≥ and between are equally frequent (strings and booleans know only =)",
    ),
    "between": (
        "share of those constraints that ask for an interval",
        "assumption: the same; what is left is halved between ≤ and ≥",
    ),
    "sources_given": (
        "share of subscriptions that name the organisations they want to hear from",
        "assumption: a minority",
    ),
    "most_sources": (
        "such a subscription names from one to so many, all numbers alike, never its own",
        "assumption: a few",
    ),
    "only": (
        "share of the subscriptions without quality constraints that leave out the classes below",
        "assumption: whoever asks for a class wants all of it",
    ),
    "values": (
        "different values of an attribute (a boolean has two)",
        "assumption: about as many as a quality dimension has",
    ),
    "quality_values": (
        "different thresholds of a quality dimension",
        "assumption: from 0.1 to 0.9, the numbers of the labels low, medium and high among them",
    ),
    "least_constraints": (
        "constraints that a subscription has at least",
        "one that asks for everything would contain all others and end the experiment",
    ),
    "mildest_first": (
        "whether the popular thresholds are the low ones",
        "assumption: popularity follows no order",
    ),
}
"""Field of `Workload` -> what it is, why it has its default."""
