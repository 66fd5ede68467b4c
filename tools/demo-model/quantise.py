"""Rounds weights to the values that Q8_0, Q6_K and Q4_K can hold, as training sees them.

The scales are chosen as the usual encoders choose them first (the largest value of a block decides), and are themselves rounded
as they are stored. A weight that was rounded here has an exact place in the format, so that encoding the file changes next to
nothing any more.
"""

import torch

_TINY = 1e-12


def _half(x: torch.Tensor) -> torch.Tensor:
    return x.half().float()


def q8_0(weights: torch.Tensor) -> torch.Tensor:
    blocks = weights.reshape(-1, 32)
    scale = _half(blocks.abs().amax(1, keepdim=True) / 127).clamp_min(_TINY)
    return ((blocks / scale).round().clamp(-127, 127) * scale).reshape(weights.shape)


def q6_k(weights: torch.Tensor) -> torch.Tensor:
    """Blocks of 16 with a scale of eight bits, 16 of them to a half-precision scale; the largest value becomes -32."""
    blocks = weights.reshape(-1, 16, 16)
    at = blocks.abs().argmax(2, keepdim=True)
    scales = blocks.gather(2, at) / -32
    largest = scales.gather(1, scales.abs().argmax(1, keepdim=True))
    outer = _half(largest / -128)
    outer = torch.where(outer == 0, _TINY, outer)
    inner = (scales / outer).round().clamp(-128, 127)
    step = outer * inner
    quants = (blocks / torch.where(step == 0, _TINY, step)).round().clamp(-32, 31)
    return (quants * step).reshape(weights.shape)


def q4_k(weights: torch.Tensor) -> torch.Tensor:
    """Blocks of 32 from a least value upwards in 15 steps; steps and least values have six bits, eight to a scale."""
    blocks = weights.reshape(-1, 8, 32)
    least = blocks.amin(2, keepdim=True).clamp_max(0)
    steps = (blocks.amax(2, keepdim=True) - least) / 15
    outer = _half(steps.amax(1, keepdim=True) / 63).clamp_min(_TINY)
    outer_least = _half((-least).amax(1, keepdim=True) / 63).clamp_min(_TINY)
    step = outer * (steps / outer).round().clamp(0, 63)
    low = outer_least * (-least / outer_least).round().clamp(0, 63)
    quants = ((blocks + low) / step.clamp_min(_TINY)).round().clamp(0, 15)
    return (quants * step - low).reshape(weights.shape)


ROUND = {"Q8_0": q8_0, "Q6_K": q6_k, "Q4_K": q4_k}


class RoundedWeights:
    """Lets a model compute with rounded weights while the optimiser moves the exact ones.

    Before a step `round` puts rounded values into the parameters, after the backward pass `restore` puts the exact ones back:
    gradients are taken at the rounded weights and applied to the exact ones. All tensors of one format are rounded at
    once, because rows are whole blocks."""

    def __init__(self, stored: dict[str, tuple[torch.Tensor, str]]):
        self.groups = []
        for format in ROUND:
            tensors = [tensor for tensor, kind in stored.values() if kind == format]
            if tensors:
                self.groups.append((ROUND[format], tensors, [t.numel() for t in tensors]))
        self.exact: list[list[torch.Tensor]] | None = None

    @torch.no_grad()
    def round(self) -> None:
        self.exact = []
        for rounded, tensors, sizes in self.groups:
            kept = [t.detach().clone() for t in tensors]
            flat = rounded(torch.cat([t.reshape(-1) for t in kept]))
            torch._foreach_copy_([t.data for t in tensors], [part.view_as(t) for part, t in zip(flat.split(sizes), tensors)])
            self.exact.append(kept)

    @torch.no_grad()
    def restore(self) -> None:
        for (_, tensors, _), kept in zip(self.groups, self.exact):
            torch._foreach_copy_([t.data for t in tensors], kept)
        self.exact = None
