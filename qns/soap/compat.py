"""spyne 2.14, imported so that it works on Python 3.12 and newer too.

Its copy of six puts modules into place with a hook that Python 3.12 no longer calls, and it asks
for `cgi`, which Python 3.13 no longer has. The rest of this room takes spyne from here.
"""

from __future__ import annotations

import collections.abc
import http.cookies
import sys
import urllib.error
import urllib.parse
import urllib.request
import warnings
from types import ModuleType

_MOVED = "spyne.util.six.moves"
sys.modules[_MOVED] = ModuleType(_MOVED)
sys.modules[f"{_MOVED}.collections_abc"] = collections.abc
sys.modules[f"{_MOVED}.http_cookies"] = http.cookies
sys.modules[f"{_MOVED}.urllib"] = urllib
sys.modules[f"{_MOVED}.urllib.error"] = urllib.error
sys.modules[f"{_MOVED}.urllib.parse"] = urllib.parse
sys.modules[f"{_MOVED}.urllib.request"] = urllib.request

# Only its transport over HTTP calls it, and that is not used here. Nobody else is to find it.
_known = sys.modules.get("cgi")
sys.modules["cgi"] = ModuleType("cgi")
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own use of Python
        from spyne import Application, MethodContext, Service, rpc
        from spyne.interface.wsdl import Wsdl11
        from spyne.model import (
            Boolean,
            ByteArray,
            ComplexModel,
            Double,
            SelfReference,
            Unicode,
            UnsignedLong,
        )
        from spyne.model.fault import Fault
        from spyne.protocol.soap import Soap11
        from spyne.protocol.xml import SchemaValidationError
        from spyne.server import ServerBase
finally:
    del sys.modules["cgi"]
    if _known is not None:
        sys.modules["cgi"] = _known
    # six's hook has done its work, and Python 3.11 warns of it at every further import.
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if type(finder).__module__ != "spyne.util.six"
    ]

__all__ = [
    "Application",
    "Boolean",
    "ByteArray",
    "ComplexModel",
    "Double",
    "Fault",
    "MethodContext",
    "SchemaValidationError",
    "SelfReference",
    "ServerBase",
    "Service",
    "Soap11",
    "Unicode",
    "UnsignedLong",
    "Wsdl11",
    "rpc",
]
