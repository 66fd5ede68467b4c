"""Writes advisories.tsv: the facts of RustSec's advisory database that `cargo xtask audit` checks lock files against.

Usage: python tools/advisories/snapshot.py FOLDER, where FOLDER is a clone of that database.

A line of the table is one advisory: its id, its package, its date, its kind (`vulnerability`, or what the database calls
informational), and the version ranges that are patched and unaffected, separated by `|`. The table holds no text of the
database. Withdrawn advisories are left out.
"""

import subprocess
import sys
import tomllib
from pathlib import Path


def read(path: Path) -> list[str] | None:
    """The columns of one advisory, whose facts stand in a block of TOML at the start of a Markdown file."""
    block = path.read_text().split("```toml", 1)[1].split("```", 1)[0]
    facts = tomllib.loads(block)
    advisory, versions = facts["advisory"], facts.get("versions", {})
    if "withdrawn" in advisory:
        return None
    ranges = ["|".join(versions.get(name, [])) for name in ("patched", "unaffected")]
    kind = advisory.get("informational", "vulnerability")
    return [advisory["id"], advisory["package"], str(advisory["date"]), kind, *ranges]


def main(folder: Path) -> None:
    rows = [row for path in (folder / "crates").glob("*/RUSTSEC-*.md") if (row := read(path))]
    if not rows:
        sys.exit(f"{folder} holds no advisories")
    date = subprocess.check_output(["git", "-C", folder, "log", "-1", "--format=%cs"], text=True).strip()
    lines = [f"# RustSec advisories as of {date}", *("\t".join(row) for row in sorted(rows))]
    (Path(__file__).parent / "advisories.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
