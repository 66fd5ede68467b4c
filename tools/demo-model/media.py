"""Pictures and sounds of a batch as the towers read them, made where the model is."""

import numpy as np
import torch

import mel
import pictures
import speech


class Media:
    def __init__(self, clips: speech.Clips | None, device: torch.device):
        self.device = device
        if clips is not None:
            self.lengths = torch.tensor([len(samples) for samples in clips.samples], device=device)
            self.waveforms = torch.zeros(len(clips.samples), int(self.lengths.max()) + 2, device=device)
            for index, samples in enumerate(clips.samples):
                self.waveforms[index, : len(samples)] = torch.from_numpy(np.ascontiguousarray(samples))

    def draw(self, entries: list[pictures.Picture]) -> torch.Tensor:
        """Pictures of one grid as bytes, [pictures, height, width, 3]."""
        generator = torch.Generator(self.device).manual_seed(entries[0].seed)
        normal = lambda shape: torch.randn(shape, generator=generator, device=self.device)
        return pictures.add_noise(pictures.draw(entries, torch, self.device), entries, normal).round().byte()

    def images(self, entries: list[pictures.Picture]) -> dict[str, torch.Tensor]:
        return self.patches(self.draw(entries).float())

    def patches(self, drawn: torch.Tensor) -> dict[str, torch.Tensor]:
        """[images, height, width, 3] of 0 to 255, sides that are multiples of 48."""
        across, down = drawn.shape[2] // 16, drawn.shape[1] // 16
        y, x = torch.meshgrid(torch.arange(down, device=self.device), torch.arange(across, device=self.device), indexing="ij")
        places = torch.stack([x.reshape(-1), y.reshape(-1)], 1).expand(len(drawn), -1, -1)
        return {"pixel_values": pictures.patches(drawn), "image_position_ids": places}

    def sounds(self, entries: list[speech.Sound]) -> dict[str, torch.Tensor]:
        """All of one length and number of words."""
        features = mel.features(self.play(entries))
        return {"input_features": features, "input_features_mask": torch.ones(features.shape[:2], dtype=torch.bool, device=self.device)}

    def play(self, entries: list[speech.Sound]) -> torch.Tensor:
        """The waveforms, [sounds, samples]."""
        number = lambda values: torch.tensor(values, device=self.device, dtype=torch.float32)[:, None]
        length = entries[0].length
        time = torch.arange(length, device=self.device, dtype=torch.float32)[None, :]
        mixed = torch.zeros(len(entries), length, device=self.device)
        for place in range(len(entries[0].clips)):
            clips = torch.tensor([entry.clips[place] for entry in entries], device=self.device)
            at = (time - number([entry.starts[place] for entry in entries])) * number([entry.speeds[place] for entry in entries])
            inside = (at >= 0) & (at < (self.lengths[clips] - 1)[:, None])
            at = at.clamp(0, self.waveforms.shape[1] - 2)
            before = at.floor().long()
            share = at - before
            rows = self.waveforms[clips]
            value = rows.gather(1, before) * (1 - share) + rows.gather(1, before + 1) * share
            mixed += torch.where(inside, value, 0.0)
        # A first-order filter makes voices duller or sharper, as microphones do.
        shifted = torch.nn.functional.pad(mixed, (1, 0))[:, :-1]
        mixed = mixed + number([entry.tilt for entry in entries]) * shifted
        generator = torch.Generator(self.device).manual_seed(entries[0].seed)
        noise = torch.randn(mixed.shape, generator=generator, device=self.device)
        mixed = mixed * number([entry.gain for entry in entries]) + noise * number([entry.noise for entry in entries])
        # As sixteen-bit samples hold it.
        return (mixed.clamp(-1, 32767 / 32768) * 32768).round() / 32768
