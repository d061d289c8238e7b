"""D2Q documents in XML. The elements have the names of the schema, as in the thesis (5.2.1).

    <d2q:document xmlns:d2q="urn:qns:d2q:1" schema="agencies">
      <d2q:data>
        <Enterprise id="e1"> <Code id="e1.Code">APTA</Code> … </Enterprise>
      </d2q:data>
      <d2q:accuracy>
        <Enterprise.accuracy of="e1"> <Code.accuracy of="e1.Code">0.9</Code.accuracy> …

Every node of the data graph has an ID. Each quality graph has the shape of the data graph, without
the parts that have no quality values, and its nodes point back by IDREF. The elements of the
structure are in the namespace of QNS, so they never collide with a name of the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lxml import etree

from qns.cbr.domains import QUALITY, Key
from qns.d2q.document import (
    DataObject,
    Document,
    ElementNames,
    check_id,
    element_names,
    labels_text,
)
from qns.d2q.lexical import WHITE_SPACE, key_text, value_key
from qns.d2q.schema import DIMENSIONS, MAX_DEPTH, Property, Schema, parent
from qns.d2q.xml import (
    MAX_BYTES,
    MAX_ELEMENTS,
    NAMESPACE,
    Element,
    child,
    line_of,
    parse_xml,
    qualified,
    quality_key,
    to_bytes,
    wrong_root,
)
from qns.errors import DocumentError, DuplicateId, NameNotKnown, QnsError, shorten

PREFIX = "d2q"


def write_document(document: Document, schema: Schema) -> bytes:
    """Returns the document as XML. Raises QnsError if it does not follow the schema.

    QNS itself only reads documents; other programs write them, and a test reads them again.
    """
    document.check(schema)
    names = element_names(schema)
    root = etree.Element(qualified("document"), {"schema": schema.name}, {PREFIX: NAMESPACE})
    data = child(root, qualified("data"))
    for top in document.objects:
        _write_object(data, top, schema, names)
    for dimension in DIMENSIONS:
        if any(name.endswith(f".{dimension}") for node in document.walk() for name in node.quality):
            graph = child(root, qualified(dimension))
            for top in document.objects:
                _write_quality(graph, top, schema, names, dimension)
    return to_bytes(root)


def read_document(
    data: bytes | str,
    schema: Schema,
    *,
    max_bytes: int = MAX_BYTES,
    max_elements: int = MAX_ELEMENTS,
) -> Document:
    """Reads a document and checks it against the schema. Raises QnsError with the line."""
    root = parse_xml(data, max_bytes=max_bytes, max_depth=MAX_DEPTH + 4, max_elements=max_elements)
    if root.tag != qualified("document"):
        raise wrong_root(root, qualified("document"))
    reader = _Reader(root, schema)
    try:
        return reader.document()
    except QnsError as problem:
        raise problem.at_mark(line_of(reader.at), None) from None


def _property_id(node: DataObject, prop: Property) -> str:
    return f"{node.id}.{prop.name}"


def _write_object(above: Element, node: DataObject, schema: Schema, names: ElementNames) -> None:
    element = child(above, names.element[node.data_class], id=node.id)
    for prop in schema.properties[node.data_class]:
        key = node.values.get(prop.qualified)
        has_quality = any(f"{prop.qualified}.{dim}" in node.quality for dim in DIMENSIONS)
        if key is not None or has_quality:
            leaf = child(element, names.element[prop.qualified], id=_property_id(node, prop))
            if key is None:
                leaf.set("absent", "true")
            else:
                leaf.text = key_text(prop.domain, key)
    for below in node.children:
        _write_object(element, below, schema, names)


def _write_quality(
    above: Element, node: DataObject, schema: Schema, names: ElementNames, dimension: str
) -> None:
    element = child(above, names.quality(node.data_class, dimension), of=node.id)
    for prop in schema.properties[node.data_class]:
        key = node.quality.get(f"{prop.qualified}.{dimension}")
        if key is not None:
            tag = names.quality(prop.qualified, dimension)
            child(element, tag, key_text(QUALITY, key), of=_property_id(node, prop))
    for below in node.children:
        _write_quality(element, below, schema, names, dimension)
    if not len(element):
        above.remove(element)


@dataclass(slots=True, eq=False)
class _Draft:
    """An object whose quality is not read yet."""

    data_class: str
    id: str
    above: _Draft | None
    values: dict[str, Key] = field(default_factory=dict)
    quality: dict[str, int] = field(default_factory=dict)
    children: list[_Draft] = field(default_factory=list)

    def finished(self) -> DataObject:
        below = tuple(draft.finished() for draft in self.children)
        return DataObject(self.data_class, self.values, self.quality, below, self.id)


class _Reader:
    def __init__(self, root: Element, schema: Schema) -> None:
        self.schema = schema
        self.names = element_names(schema)
        self.properties = {p.qualified: p for own in schema.properties.values() for p in own}
        self.nodes: dict[str, tuple[_Draft, str]] = {}  # ID -> object, and its class or a property
        self.given: set[tuple[str, str]] = set()  # (dimension, ID)
        self.at = root  # the element that is being read, for errors

    def document(self) -> Document:
        root = self.at
        self._branch(root, {"schema": self.schema.name, "labels": labels_text(self.schema)})
        if root.get("schema") is None:
            raise DocumentError("the document does not name its schema", remedy="add schema='…'")
        graphs = list(root)
        if not graphs or graphs[0].tag != qualified("data"):
            raise DocumentError("a document without data", remedy=f"begin with {PREFIX}:data")
        self._branch(graphs[0], {})
        tops = [self._object(element, None) for element in graphs[0]]
        left = {qualified(dimension): dimension for dimension in DIMENSIONS}
        for graph in graphs[1:]:
            self._branch(graph, {})
            dimension = left.pop(graph.tag, None)
            if dimension is None:
                raise DocumentError(
                    f"{shorten(graph.tag)} is not expected here",
                    remedy="after the data, at most one graph per dimension: "
                    + ", ".join(f"{PREFIX}:{dimension}" for dimension in DIMENSIONS),
                )
            for element in graph:
                self._quality(element, None, dimension)
        return Document(self.schema.name, tuple(draft.finished() for draft in tops))

    def _object(self, element: Element, above: _Draft | None) -> _Draft:
        self.at = element
        path = self.names.meaning.get(element.tag)
        if path not in self.schema.properties or (above and parent(path) != above.data_class):
            raise self._unexpected(element, above)
        self._branch(element, {"id": None, "class": path})
        draft = _Draft(path, check_id(self._reference(element, "id")), above)
        self._name(draft.id, draft, path)
        seen: set[str] = set()
        for node in element:
            prop = self.properties.get(self.names.meaning.get(node.tag, ""))
            if prop is None:
                draft.children.append(self._object(node, draft))
                continue
            self.at = node
            if prop.owner != path:
                raise self._unexpected(node, draft)
            if prop.name in seen:
                raise DocumentError(f"{prop.qualified} is given twice", remedy="keep one of them")
            seen.add(prop.name)
            self._property(node, draft, prop)
        return draft

    def _property(self, element: Element, draft: _Draft, prop: Property) -> None:
        fixed = {"property": prop.qualified, "type": prop.domain.name}
        self._leaf(element, {"id": None, "absent": None, **fixed})
        if element.get("id") is not None:
            self._name(self._reference(element, "id"), draft, prop.qualified)
        if (absent := element.get("absent", "false")) not in ("true", "false"):
            raise DocumentError(f"absent is {shorten(absent)}", remedy="give true or false")
        text = element.text or ""
        if absent == "false":
            draft.values[prop.qualified] = value_key(prop.domain, text)
        elif text:
            raise DocumentError(
                f"{prop.qualified} is absent and has a value", remedy="remove one of the two"
            )

    def _quality(self, element: Element, above: _Draft | None, dimension: str) -> None:
        self.at = element
        name, _, suffix = element.tag.rpartition(".")
        meant = self.names.meaning.get(name, "")
        if not meant or suffix != dimension:
            known = [f"{name}.{dimension}" for name in self.names.meaning]
            raise NameNotKnown("element", element.tag, known)
        identifier = self._reference(element, "of")
        draft, node = self.nodes.get(identifier, (None, ""))
        if draft is None:
            raise DocumentError(
                f"no node of the data graph has the id {shorten(identifier)}",
                remedy=f"give it in {PREFIX}:data, with absent='true' if there is no value",
            )
        if node != meant or (draft.above if node == draft.data_class else draft) is not above:
            raise DocumentError(
                f"{shorten(element.tag)} points at {shorten(identifier)}, which is {node} "
                "or belongs to another object",
                remedy="a quality graph has the shape of the data graph",
            )
        if (dimension, identifier) in self.given:
            raise DocumentError(f"the {dimension} of {shorten(identifier)} is given twice")
        self.given.add((dimension, identifier))
        if node in self.properties:
            self._leaf(element, {"of": None})
            draft.quality[f"{node}.{dimension}"] = quality_key(element.text or "", self.schema)
            return
        self._branch(element, {"of": None})
        for inner in element:
            self._quality(inner, draft, dimension)

    def _name(self, identifier: str, draft: _Draft, meant: str) -> None:
        if identifier in self.nodes:
            raise DuplicateId(f"the id {shorten(identifier)} is given twice")
        self.nodes[identifier] = draft, meant

    def _reference(self, element: Element, attribute: str) -> str:
        text = element.get(attribute, "").strip(WHITE_SPACE)
        if not text:
            raise DocumentError(f"{shorten(element.tag)} has no attribute {attribute!r}")
        return text

    def _branch(self, element: Element, attributes: Mapping[str, str | None]) -> None:
        """Checks an element that holds elements, with no text between them."""
        self._attributes(element, attributes)
        for text in (element.text, *(inner.tail for inner in element)):
            if text and text.strip(WHITE_SPACE):
                raise DocumentError(f"text between elements: {shorten(text.strip(WHITE_SPACE))}")

    def _leaf(self, element: Element, attributes: Mapping[str, str | None]) -> None:
        """Checks an element that holds a value."""
        self._attributes(element, attributes)
        if len(element):
            raise DocumentError(f"an element inside {shorten(element.tag)}", remedy="give a value")

    def _attributes(self, element: Element, allowed: Mapping[str, str | None]) -> None:
        """Checks that all attributes are allowed and have the values that the DTD fixes."""
        self.at = element
        for name, value in element.attrib.items():
            if name not in allowed:
                raise NameNotKnown("attribute", str(name), allowed)
            if (fixed := allowed[str(name)]) not in (None, value):
                raise DocumentError(
                    f"{name!s} is {shorten(str(value))}",
                    remedy=f"{shorten(str(fixed))} is expected",
                )

    def _unexpected(self, element: Element, above: _Draft | None) -> NameNotKnown:
        if above is None:
            known = [self.names.element[path] for path in self.schema.classes]
            return NameNotKnown("class", element.tag, known)
        own = [prop.qualified for prop in self.schema.properties[above.data_class]]
        known = [self.names.element[n] for n in (*own, *self.schema.children(above.data_class))]
        problem = f"{shorten(element.tag)} does not stand in {above.data_class}"
        return NameNotKnown("element", element.tag, known, problem=problem)
