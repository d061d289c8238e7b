"""`python -m qns.cli` runs `qns` where the script is not on the path."""

from __future__ import annotations

import sys

from qns.cli.main import main

sys.exit(main())
