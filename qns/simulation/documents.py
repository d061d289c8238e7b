"""Documents: what each version of the federation document let organisations read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from qns.federation.document import Federation
from qns.federation.schema_mapper import SchemaMapper


@dataclass(slots=True, eq=False)
class Documents:
    versions: dict[int, tuple[float, SchemaMapper]] = field(default_factory=dict)
    """Version -> since when it is the newest document, and what it says; oldest first."""

    def add(self, now: float, federation: Federation) -> None:
        self.versions[federation.version] = now, SchemaMapper(federation)

    @property
    def have_rights(self) -> bool:
        """True if any version says who may read what."""
        return any(each.federation.rights is not None for _, each in self.versions.values())

    def until(self, t: float) -> Iterator[SchemaMapper]:
        """Yields what peers may have had by this time."""
        return (mapper for since, mapper in self.versions.values() if since <= t)

    def may_read(self, version: int, reader: str, source: str, data_class: str) -> bool:
        """True if that version lets the organisation read such events, or is not known."""
        _, mapper = self.versions.get(version, (0.0, None))
        return mapper is None or mapper.may_read(reader, source, data_class)

    def let_read(self, since: float, reader: str, source: str, data_class: str) -> bool:
        """True if every version that was the newest one at this time or later lets it read.

        A version whose schema does not have the class does not count.
        """
        newest = list(self.versions.values())
        ends = [begun for begun, _ in newest[1:]]
        return all(
            mapper.may_read(reader, source, data_class)
            for (_, mapper), end in zip(newest, [*ends, inf], strict=True)
            if (end > since or end == inf) and data_class in mapper.federation.schema.classes
        )
