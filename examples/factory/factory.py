"""A Quality Factory: measures the quality of a CSV file of holders and publishes the changes.

python factory.py holders.csv CoC http://127.0.0.1:8703/
"""

import csv
import json
import re
import sys
from hashlib import sha256
from pathlib import Path

from qns import Client

FISCAL_CODE = re.compile(r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]")
table, organisation, peer = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
memory = table.with_suffix(".quality.json")  # the last published quality of each record
known = json.loads(memory.read_text()) if memory.exists() else {}

with Client(peer, "factory") as client, table.open(newline="") as rows:
    for row in csv.DictReader(rows):
        quality = {f"{name}.completeness": float(bool(row[name])) for name in ("Name", "Address")}
        quality["FiscalCode.accuracy"] = 1.0 if FISCAL_CODE.fullmatch(row["FiscalCode"]) else 0.2
        version, before = known.get(row["Code"], (0, {}))
        changed = {name: value for name, value in quality.items() if before.get(name) != value}
        if not changed:
            continue
        event = {"class": "Enterprise/Holder", "source": organisation, "available": 86_400}
        event |= {"data": row, "quality": changed, "previous": before}
        digest = sha256(json.dumps(event).encode()).hexdigest()[:8]
        published = client.publish(event | {"id": f"{row['Code']}-{version + 1}-{digest}"})
        known[row["Code"]] = version + 1, quality  # a crash before this line is safe: same id
        memory.write_text(json.dumps(known))
        print(published.id, changed)
