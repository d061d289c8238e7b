"""Stands in the way of numba, for processes that run as `pip install qns` installs them."""

from __future__ import annotations

raise ImportError("numba is hidden: this process runs without the extra 'fast'")
