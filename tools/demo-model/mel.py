"""Log-mel features as Gemma 4 hears them, in batches of one length, with PyTorch."""

import math
from functools import lru_cache

import torch


@lru_cache(maxsize=None)
def _filters(device: torch.device) -> torch.Tensor:
    """[257, 128]: triangles on the HTK mel scale from 0 to 8000 Hz."""
    mel = lambda hertz: 2595 * math.log10(1 + hertz / 700)
    points = torch.linspace(mel(0), mel(8000), 130, dtype=torch.float64)
    edges = 700 * (10 ** (points / 2595) - 1)
    bins = torch.arange(257, dtype=torch.float64)[:, None] * 31.25
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return torch.minimum(rising, falling).clamp_min(0).float().to(device)


def features(waveforms: torch.Tensor) -> torch.Tensor:
    """[clips, samples] from -1 to 1 at 16 kHz to [clips, frames, 128]."""
    count = (waveforms.shape[1] + 160 - 321) // 160 + 1
    padded = torch.nn.functional.pad(waveforms.float(), (160, 0))
    frames = padded.unfold(1, 320, 160)[:, :count]
    window = 0.5 - 0.5 * torch.cos(2 * math.pi * torch.arange(320, device=waveforms.device) / 320)
    spectrum = torch.fft.rfft(frames * window, n=512).abs()
    return (spectrum @ _filters(waveforms.device) + 0.001).log()
