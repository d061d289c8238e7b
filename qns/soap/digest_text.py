"""What the WSDL says about the digest of a view, with an example that other programs can check."""

from __future__ import annotations

from typing import Final

EXAMPLE_ELEMENTS: Final = (
    '<subscription xmlns="urn:qns:d2q:1" class="Enterprise/Holder"/>',
    '<subscription xmlns="urn:qns:d2q:1" class="Enterprise" only="true"/>',
)
EXAMPLE_HASHES: Final = (
    "a1d59c9bbf168cbc771e90b694c94673379d702319eeaceeea2067abdd33e5ba",
    "93e22bf615c8d43c3e09c163ba5339c500750e8995cdf2c9d603b2ad6c88a038",
)
EXAMPLE_DIGEST: Final = "35b7c891d4df60f8b528521a4f1c803838127eacafbc9fb8c0241a5949bc85f2"

DIGEST: Final = f"""The digest of the complete view after the change. It is computed as follows. \
(1) Each element of the view is the text of one subscription as D2Q XML, exactly as it is sent in \
added, after the XML of this message is parsed: every character counts, and no canonical form is \
prescribed. A removed element repeats the text with which it was added. The view is a set: an \
element that is added twice counts once. (2) The hash of an element is the SHA-256 of its text in \
UTF-8, without a byte order mark, read as an unsigned integer of 256 bits with the most \
significant byte first. (3) The digest is the sum of the hashes of all elements modulo 2^256, so \
their order does not matter. (4) It is written as 64 hexadecimal digits in lower case, with \
leading zeros. The digest of an empty view is 64 zeros. Example: the element {EXAMPLE_ELEMENTS[0]} \
has the hash {EXAMPLE_HASHES[0]}, the element {EXAMPLE_ELEMENTS[1]} has the hash \
{EXAMPLE_HASHES[1]}, and the view of these two elements has the digest {EXAMPLE_DIGEST}."""
