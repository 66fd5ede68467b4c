"""Heads that help the vision tower to see while it is trained, and are thrown away afterwards.

From answers alone the tower hears of a picture's shape and number once in some ten tokens, and takes long to begin. These heads ask it
directly: of all rows together for shape, colour and number, and of each row whether the middle of a thing lies in it.
"""

import torch
import torch.nn.functional as F

import pictures

_COLOURS = sorted(pictures.COLOURS)
_ROW = 48


def labels(entries: list[pictures.Picture]) -> dict[str, torch.Tensor]:
    across, down = entries[0].grid[0] // 3, entries[0].grid[1] // 3
    middles = torch.zeros(len(entries), down, across)
    for index, entry in enumerate(entries):
        short = min(entry.size)
        for x, y, _, _ in entry.things:
            middles[index, int(y * short) // _ROW, int(x * short) // _ROW] = 1
    return {
        "shape": torch.tensor([pictures.SHAPES.index(entry.shape) for entry in entries]),
        "colour": torch.tensor([_COLOURS.index(entry.colour) for entry in entries]),
        "count": torch.tensor([entry.count - 1 for entry in entries]),
        "middles": middles,
    }


class HelperHeads(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.shape = torch.nn.Linear(width, len(pictures.SHAPES))
        self.colour = torch.nn.Linear(width, len(_COLOURS))
        self.count = torch.nn.Linear(width, 5)
        self.middles = torch.nn.Linear(width, 1)

    def forward(self, rows: torch.Tensor, wanted: dict[str, torch.Tensor]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss for [images, rows, width], and the share of right answers by kind."""
        rows = rows.float().reshape(len(wanted["shape"]), -1, rows.shape[-1])
        loss = 4 * F.binary_cross_entropy_with_logits(self.middles(rows).squeeze(-1), wanted["middles"].flatten(1))
        right = {}
        for kind in ("shape", "colour", "count"):
            logits = getattr(self, kind)(rows.mean(1))
            loss = loss + F.cross_entropy(logits, wanted[kind])
            right[kind] = (logits.argmax(-1) == wanted[kind]).float().mean()
        return loss, right
