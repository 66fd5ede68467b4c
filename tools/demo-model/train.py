"""Trains the model: texts, pictures and sounds together, and at the end with the weights rounded as the file holds them.

The schedule follows the clock (`--minutes`) or a number of steps (`--steps`). At first the vision tower learns alone, with heads that
ask it directly; then every step reads one batch of texts and one of media, in turns pictures and sounds.
"""

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers.models.gemma4 import modeling_gemma4

import model as model_file
from batches import Batch, MediaData, MediaSizes, TextData, Tokens, make_media, make_texts
from helper_heads import HelperHeads
from media import Media
from quantise import RoundedWeights
from speech import Clips


@dataclass(frozen=True)
class Plan:
    """How much of everything."""
    conversations: int
    tokens_per_batch: int
    media: MediaSizes
    minutes: float | None = None
    steps: int | None = None
    #: After so many minutes of one run, write everything down and end; the next run goes on there.
    pause_after: float | None = None
    rate: float = 1.5e-3
    #: Share of the whole in which the vision tower alone learns to see, before everything is trained together.
    see_first: float = 0.12
    #: Shares of the whole at which clip bounds are set and rounding begins.
    calibrate_at: float = 0.4
    round_at: float = 0.62
    compile: bool = False


FULL = Plan(300_000, 49_152, MediaSizes((500, 64), (150, 16), (420, 128)), minutes=12)
REHEARSAL = Plan(400, 768, MediaSizes((4, 4), (1, 2), (4, 8)), steps=12)


def run(plan: Plan, tokenizer_folder: Path, speech_file: Path | None, out: Path, device: torch.device) -> bool:
    """Trains and writes the checkpoint folder. False if it paused before the end."""
    workers = max(1, (os.cpu_count() or 1) - 1)
    started = time.monotonic()
    tokens = Tokens(tokenizer_folder)
    made_texts = make_texts(tokenizer_folder, plan.conversations, workers)
    made_media = make_media(tokenizer_folder, speech_file, plan.media, workers)
    say(f"{len(made_texts):,} conversations, {', '.join(f'{len(made)} batches of {kind}' for kind, made in made_media.items())}; {time.monotonic() - started:.0f} s")
    texts = TextData(made_texts, plan.tokens_per_batch, device, tokens.pad)
    media_data = MediaData(made_media, Media(Clips.load(speech_file) if speech_file else None, device))
    say(f"{texts.tokens:,} tokens of text, {texts.dropped} conversations too long; all on {device} after {time.monotonic() - started:.0f} s")

    torch.set_float32_matmul_precision("high")
    with _fast_norms():
        model = model_file.build(tokens.tokenizer).to(device)
        model_file.train_layer_scales(model)
        if not Trainer(model, plan, texts, media_data, device, out, tokenizer_folder).run():
            return False
    model_file.save(model, tokenizer_folder, out / "checkpoint")
    say(f"checkpoint written; {time.monotonic() - started:.0f} s in all")
    return True


class Trainer:
    def __init__(self, model, plan: Plan, texts: TextData, media: MediaData, device: torch.device, out: Path, tokenizer_folder: Path):
        self.model, self.plan, self.texts, self.media, self.device = model, plan, texts, media, device
        self.out, self.tokenizer_folder = out, tokenizer_folder
        self.heads = HelperHeads(model.config.text_config.hidden_size).to(device)
        parameters = [*model.parameters(), *self.heads.parameters()]
        matrices, vectors = [p for p in parameters if p.dim() >= 2], [p for p in parameters if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": 0.02}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=plan.rate, betas=(0.9, 0.98), fused=device.type == "cuda")
        self.rounded = RoundedWeights(model_file.stored_tensors(model))
        self.turn = [kind for kind in ("image", "audio", "image", "audio", "large image", "audio") if kind in media.pools]
        self.losses: dict[str, list] = {}
        # Products in bfloat16; weights, norms and sums stay float32.
        self.low_precision = device.type == "cuda"
        if plan.compile:
            try:
                for layer in model.model.language_model.layers:
                    layer.compile(dynamic=True)
            except Exception as problem:  # Compiling saves time and nothing else.
                say(f"not compiled: {problem}")

    def run(self) -> bool:
        """Trains to the end, or to the pause: then it returns False."""
        self._resume()
        self.started = told = time.monotonic()
        progress = self._progress()
        self.model.train()
        while progress < 1:
            if progress >= self.plan.calibrate_at and not self.calibrated:
                self._calibrate()
                self.calibrated = True
                # Should the machine be taken away later, there is at least this.
                model_file.save(self.model, self.tokenizer_folder, self.out / "checkpoint")
            rounding = progress >= self.plan.round_at
            self._step(self.step, progress, rounding)
            self.step += 1
            progress = self._progress()
            if time.monotonic() - told > 10 or progress >= 1 or self.step == 3:
                told = time.monotonic()
                self._tell(progress, rounding)
            if self.plan.pause_after is not None and progress < 1 and time.monotonic() - self.started > self.plan.pause_after * 60:
                self._pause()
                return False
        # What was trained last is what the file shall hold: the rounded weights stay.
        self.rounded.round()
        self.model.eval()
        (self.out / "state.pt").unlink(missing_ok=True)
        return True

    def _elapsed(self) -> float:
        return self.before + time.monotonic() - self.started

    def _progress(self) -> float:
        if self.plan.steps is not None:
            return self.step / self.plan.steps
        return self._elapsed() / (self.plan.minutes * 60)

    def _pause(self) -> None:
        state = {"model": self.model.state_dict(), "heads": self.heads.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step, "elapsed": self._elapsed(), "calibrated": self.calibrated}
        self.out.mkdir(parents=True, exist_ok=True)
        torch.save(state, self.out / "state.pt")
        say(f"paused at step {self.step}; the same command goes on from here")

    def _resume(self) -> None:
        self.step, self.before, self.calibrated = 0, 0.0, False
        if (self.out / "state.pt").exists():
            state = torch.load(self.out / "state.pt", map_location=self.device, weights_only=True)
            self.model.load_state_dict(state["model"])
            self.heads.load_state_dict(state["heads"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.before, self.calibrated = state["step"], state["elapsed"], state["calibrated"]
            say(f"going on from step {self.step}, {self.before:.0f} s")

    def _step(self, step: int, progress: float, rounding: bool) -> None:
        rate = self.plan.rate * min(1, (step + 1) / 200 if self.plan.steps is None else (step + 1) / max(2, self.plan.steps // 20))
        rate *= 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1, progress)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if progress < self.plan.see_first and "image" in self.media.pools:
            return self._see(step)
        if rounding:
            self.rounded.round()
        batches = [self.texts.next()]
        if self.turn:
            batches.append(self.media.next(self.turn[step % len(self.turn)]))
        for batch in batches:
            loss = self.loss(batch)
            loss.backward()
            self.losses.setdefault(batch.kind, []).append(loss.detach())
        if rounding:
            self.rounded.restore()
        self._move()

    def _move(self) -> None:
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _see(self, step: int) -> None:
        """One step of the vision tower alone, with the helper heads."""
        batch = self.media.next("large image" if step % 4 == 3 and "large image" in self.media.pools else "image")
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.low_precision):
            rows = torch.cat(list(self.model.model.get_image_features(**batch.media, return_dict=True).pooler_output))
        loss, right = self.heads(rows, batch.shown)
        loss.backward()
        self._move()
        for kind, share in right.items():
            self.losses.setdefault(f"sees {kind}", []).append(share)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Mean cross entropy of the tokens that the model has to write. The head is computed for those alone."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.low_precision):
            # Without media the decoder alone does the same with less ado.
            body = self.model.model if batch.media else self.model.model.language_model
            output = body(input_ids=batch.ids, use_cache=False, **batch.media)
            logits = self.model.lm_head(output.last_hidden_state.flatten(0, 1)[batch.places])
        logits = 30 * torch.tanh(logits.float() / 30)
        loss = F.cross_entropy(logits, batch.ids.flatten()[batch.places + 1])
        if batch.shown is None or not torch.is_grad_enabled():
            return loss
        helped, right = self.heads(output.image_hidden_states, batch.shown)
        for kind, share in right.items():
            self.losses.setdefault(f"sees {kind}", []).append(share)
        # The value told is that of the answers; the gradient is that of both.
        return loss + 0.2 * (helped - helped.detach())

    @torch.no_grad()
    def _calibrate(self) -> None:
        """Sets the bounds of the clipped linears to what nearly all of their values stay within. Linears that read the same
        input get the same bounds, because some engines clip in place."""
        linears = {name: m for name, m in self.model.named_modules() if isinstance(m, modeling_gemma4.Gemma4ClippableLinear)}
        seen = {name: [0.0, 0.0] for name in linears}

        def record(name):
            def hook(module, inputs, output):
                for side, value in enumerate((inputs[0], output)):
                    flat = value.detach().float().abs().flatten()
                    flat = flat[:: max(1, flat.numel() // 500_000)]
                    seen[name][side] = max(seen[name][side], torch.quantile(flat, 0.9998).item())
            return hook

        hooks = [module.register_forward_hook(record(name)) for name, module in linears.items()]
        for kind in self.media.pools:
            for _ in range(min(4, len(self.media.pools[kind]))):
                self.loss(self.media.next(kind))
        for hook in hooks:
            hook.remove()
        siblings: dict[str, list[str]] = {}
        for name in linears:
            part = name.rsplit(".", 1)[1]
            group = "qkv" if part in ("q_proj", "k_proj", "v_proj") else "gate, up" if part in ("gate_proj", "up_proj") else part
            siblings.setdefault(f"{name.rsplit('.', 1)[0]} {group}", []).append(name)
        for names in siblings.values():
            read, written = (max(seen[name][side] for name in names) * 1.05 for side in (0, 1))
            for name in names:
                module = linears[name]
                for buffer, value in ((module.input_min, -read), (module.input_max, read), (module.output_min, -written), (module.output_max, written)):
                    buffer.fill_(value if value else math.copysign(1.0, value))
        say(f"clip bounds set for {len(linears)} linears")

    def _tell(self, progress: float, rounding: bool) -> None:
        elapsed = self._elapsed()
        means = {kind: torch.stack(values[-50:]).mean().item() for kind, values in sorted(self.losses.items())}
        if not all(math.isfinite(mean) for mean in means.values()):
            raise SystemExit(f"training broke at step {self.step}: {means}")
        parts = [f"{kind} {mean:.3f}" for kind, mean in means.items()]
        left = elapsed / max(progress, 1e-6) * (1 - progress)
        say(f"step {self.step:6}  {elapsed:5.0f} s, {left:4.0f} s left  loss: {', '.join(parts)}{'  rounded' if rounding else ''}")
        for values in self.losses.values():
            del values[:-50]


class _fast_norms:
    """PyTorch's own RMS norm in place of the one spelt out in transformers: the same values in one kernel, not six."""

    def __enter__(self):
        self.kept = modeling_gemma4.Gemma4RMSNorm.forward
        def forward(norm, x):
            return F.rms_norm(x.float(), (x.shape[-1],), norm.weight if norm.with_scale else None, norm.eps).type_as(x)
        modeling_gemma4.Gemma4RMSNorm.forward = forward

    def __exit__(self, *_):
        modeling_gemma4.Gemma4RMSNorm.forward = self.kept


def say(text: str) -> None:
    print(text, flush=True)
