"""Imports spyne 2.14 in a way that works on Python 3.12 and newer.

spyne's copy of six provides modules with an import hook that Python 3.12 no longer calls, and spyne
imports `cgi`, which Python 3.13 no longer has. All other modules of `qns/soap` import spyne from
here.
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

# spyne needs `cgi` only for its HTTP transport, which is not used here. The empty module is removed
# again so that other libraries do not import it.
_known = sys.modules.get("cgi")
sys.modules["cgi"] = ModuleType("cgi")
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # spyne's source causes deprecation warnings
        from spyne import Application, MethodContext, Service, rpc
        from spyne.interface.wsdl import Wsdl11
        from spyne.model import (
            Boolean,
            ByteArray,
            ComplexModel,
            DateTime,
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
    # six's hook is no longer needed, and Python 3.11 would warn about it at every later import.
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if type(finder).__module__ != "spyne.util.six"
    ]

__all__ = [
    "Application",
    "Boolean",
    "ByteArray",
    "ComplexModel",
    "DateTime",
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
