"""Interpreter: reads a user's subscription, in any of its spellings (thesis 5.4.4)."""

from __future__ import annotations

import re

from qns.cbr.subscription import Subscription
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import read_subscription

_XML = re.compile(r"\ufeff?\s*(<\?xml|<!--|<([\w.-]+:)?subscription\s[^<>]*\bxmlns)")


def interpret(text: str, schema: Schema) -> Subscription:
    """The normal form; QnsError tells what is wrong with the text and where."""
    if _XML.match(text):
        return read_subscription(text, schema)
    return parse_subscription(text, schema)


def readable(text: str, subscription: Subscription, schema: Schema) -> str:
    """The text as its author wrote it; XML in words."""
    return write_readable(subscription, schema) if _XML.match(text) else text
