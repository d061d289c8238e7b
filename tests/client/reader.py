"""A program that does its work once for each event: run by a test that kills it again and again.

`python -m tests.client.reader URL OWNER ID DATABASE`
"""

from __future__ import annotations

import sqlite3
import sys

from qns.client import Client


def read(url: str, owner: str, id: str, database: str) -> None:
    work = sqlite3.connect(database)
    work.execute("CREATE TABLE IF NOT EXISTS done (number INTEGER, event TEXT)")
    (cursor,) = work.execute("SELECT coalesce(max(number), 0) FROM done").fetchone()
    with Client(url, owner) as client, client.deliveries(id, after=cursor, limit=7) as stream:
        for delivered in stream:
            with work:  # the work and the cursor in one transaction
                work.execute("INSERT INTO done VALUES (?, ?)", (delivered.number, delivered.id))
            sys.stdout.write(f"{delivered.id}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    read(*sys.argv[1:])
