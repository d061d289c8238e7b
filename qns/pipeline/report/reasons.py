"""Reasons: the meaning of each parameter of a generated workload, and the reason for its default.

The thesis says only what is Zipf and what is uniform. All else is marked as an assumption here, and
the sensitivity table shows the effect of other values.
"""

from __future__ import annotations

from typing import Final

PARAMETERS: Final[dict[str, tuple[str, str]]] = {
    "constrained": (
        "probability of a constraint on a data property of the class or of an enclosing class",
        "assumption: half of them",
    ),
    "quality_constrained": (
        "probability of a constraint on each quality dimension of the class's own properties",
        "assumption: one of the four dimensions of a property on average",
    ),
    "zipf": (
        "exponent of the popularity of an attribute's values (0: all equally popular)",
        "the thesis says Zipf without an exponent; 1 is Zipf's law",
    ),
    "class_zipf": (
        "exponent of the popularity of classes, in the order of the schema",
        "the thesis says Zipf only of attributes, so all classes are equally popular",
    ),
    "equality": (
        "share of equalities among the constraints on numbers, dates and qualities",
        "assumption: =, ≤, ≥ and between are equally frequent (strings and booleans have only =)",
    ),
    "between": (
        "share of intervals among those constraints",
        "assumption: the same; ≤ and ≥ share the rest equally",
    ),
    "sources_given": (
        "share of subscriptions that name their sources",
        "assumption: a minority",
    ),
    "most_sources": (
        "the number of sources is uniform from one to this; the subscriber's own is excluded",
        "assumption: a few",
    ),
    "only": (
        "share of subscriptions without quality constraints that exclude the classes below",
        "assumption: a subscription to a class includes the classes below",
    ),
    "values": (
        "number of values of an attribute (a boolean has two)",
        "assumption: about as many as a quality dimension has",
    ),
    "quality_values": (
        "number of thresholds of a quality dimension",
        "assumption: from 0.1 to 0.9, which includes the labels low, medium and high",
    ),
    "least_constraints": (
        "least number of constraints of a subscription",
        "one without constraints would contain all others and end the experiment",
    ),
    "mildest_first": (
        "whether low thresholds are the popular ones",
        "assumption: popularity has no order",
    ),
}
"""Field of `Workload` -> its meaning and the reason for its default."""
