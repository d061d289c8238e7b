"""A program that does its work once for each event: run by a test that kills it again and again.

`python -m tests.client.reader URL OWNER ID DATABASE`
"""

from __future__ import annotations

import sqlite3
import sys

from qns.client import Client


def read(url: str, owner: str, id: str, database: str) -> None:
    work = sqlite3.connect(database)
    work.execute("CREATE TABLE IF NOT EXISTS done (number INTEGER, event TEXT, cursor TEXT)")
    newest = work.execute("SELECT cursor FROM done ORDER BY number DESC LIMIT 1").fetchone()
    cursor = newest[0] if newest else 0
    with Client(url, owner) as client, client.deliveries(id, after=cursor, limit=7) as stream:
        for delivered in stream:
            with work:  # the work and the cursor in one transaction
                row = (delivered.number, delivered.id, delivered.cursor)
                work.execute("INSERT INTO done VALUES (?, ?, ?)", row)
            sys.stdout.write(f"{delivered.id}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    read(*sys.argv[1:])
