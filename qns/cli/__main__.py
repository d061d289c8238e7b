"""`python -m qns.cli`, where the `qns` script is not on the path."""

from __future__ import annotations

import sys

from qns.cli.main import main

sys.exit(main())
