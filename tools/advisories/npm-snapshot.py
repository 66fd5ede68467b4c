"""Renews npm.tsv: the facts of GitHub's advisory database about the packages that `packages/app` and `packages/npm` ship.

Usage: python tools/advisories/npm-snapshot.py FOLDER, where FOLDER is a clone of github.com/github/advisory-database.

The database has one file in the OSV format for each advisory. Summaries are our own words: those of advisories that the table
already has are kept, and a new one says only where to read about it, until a person describes it.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LOCKS = [HERE / "../../packages" / name / "package-lock.json" for name in ("app", "npm")]


def shipped() -> set[str]:
    """The names of all packages in the lock files that are not for development only."""
    entries = [entry for lock in LOCKS for entry in json.loads(lock.read_text())["packages"].items()]
    return {path.rpartition("node_modules/")[2] for path, entry in entries if "node_modules/" in path and not entry.get("dev")}


def ranges_of(affected: dict) -> str:
    """The vulnerable versions, as npm.mjs reads them."""
    ranges = []
    for events in (found["events"] for found in affected.get("ranges", []) if found["type"] == "SEMVER"):
        low = None
        for event in events:
            if "introduced" in event:
                low = event["introduced"]
                continue
            high = f"< {event['fixed']}" if "fixed" in event else f"<= {event['last_affected']}"
            ranges.append(high if low == "0" else f">= {low}, {high}")
            low = None
        if low is not None:
            ranges.append(f">= {'0.0.0' if low == '0' else low}")
    return "|".join(ranges or [f"= {version}" for version in affected.get("versions", [])])


def main(folder: Path) -> None:
    table = HERE / "npm.tsv"
    known = [line.split("\t") for line in table.read_text().splitlines() if not line.startswith("#")]
    summaries = {(row[0], row[1]): row[4] for row in known}
    names, rows, count = shipped(), [], 0
    for path in folder.glob("advisories/github-reviewed/**/GHSA-*.json"):
        count += 1
        advisory = json.loads(path.read_text())
        if "withdrawn" in advisory:
            continue
        of_package: dict[str, list[str]] = {}
        for affected in advisory["affected"]:
            package = affected["package"]
            if package["ecosystem"] == "npm" and package["name"] in names:
                of_package.setdefault(package["name"], []).append(ranges_of(affected))
        for name, ranges in of_package.items():
            summary = summaries.get((advisory["id"], name), f"see https://github.com/advisories/{advisory['id']}")
            rows.append([advisory["id"], name, "|".join(ranges), advisory["published"][:10], summary])
    if count == 0:
        sys.exit(f"{folder} holds no advisories")
    date = subprocess.check_output(["git", "-C", folder, "log", "-1", "--format=%cs"], text=True).strip()
    title = [f"# npm advisories as of {date}, for the packages that the app ships"]
    columns = ["# Columns: id, package, vulnerable versions (alternatives separated by `|`), date, summary."]
    table.write_text("\n".join([*title, *columns, *("\t".join(row) for row in sorted(rows))]) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
