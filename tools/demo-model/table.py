"""The table of accuracy by task, and which of it is required."""

#: Tasks that must reach nine in ten.
REQUIRED = ("facts", "arithmetic", "image shape", "speech")
SHARE = 0.9


def markdown(result: dict) -> str:
    lines = ["| task | right | of | share |", "|---|---|---|---|"]
    for name, counts in result["tasks"].items():
        mark = f" (needs {100 * SHARE:.0f} %)" if name in result["required"] else ""
        lines.append(f"| {name}{mark} | {counts['right']} | {counts['of']} | {100 * counts['right'] / counts['of']:.1f} % |")
    return "\n".join(lines)


def too_weak(result: dict) -> list[str]:
    """Required tasks in which too few answers are right, or that were left out."""
    shares = {name: counts["right"] / counts["of"] for name, counts in result["tasks"].items()}
    return [name for name in result["required"] if shares.get(name, 0) < SHARE]
