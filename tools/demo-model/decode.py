"""Greedy replies, in batches of prompts that are about equally long; shorter ones are padded on the left and masked there."""

from dataclasses import dataclass

import torch
from transformers import DynamicCache

from batches import Tokens
from media import Media
from talk import Medium


@dataclass
class Prompt:
    ids: list[int]
    medium: Medium | None = None


@torch.no_grad()
def greedy(model, tokens: Tokens, media: Media, prompts: list[Prompt], most: int = 64, rows: int = 256) -> list[list[int]]:
    """Token numbers of each reply, with the one that ends it."""
    replies: list[list[int]] = [[] for _ in prompts]
    groups: dict[tuple, list[int]] = {}
    for index, prompt in enumerate(prompts):
        if prompt.medium is None:
            key = ("text", -(-len(prompt.ids) // 16))
        else:
            content = prompt.medium.content
            key = (prompt.medium.kind, len(prompt.ids), *(content.grid if prompt.medium.kind == "image" else (content.length, len(content.clips))))
        groups.setdefault(key, []).append(index)
    for key, members in sorted(groups.items(), key=lambda item: str(item[0])):
        step = rows if key[0] == "text" else max(1, rows // 8)
        for at in range(0, len(members), step):
            part = members[at: at + step]
            for index, reply in zip(part, _batch(model, tokens, media, [prompts[i] for i in part], most)):
                replies[index] = reply
    return replies


def _inputs(media: Media, prompts: list[Prompt]) -> dict[str, torch.Tensor]:
    if prompts[0].medium is None:
        return {}
    entries = [prompt.medium.content for prompt in prompts]
    return media.images(entries) if prompts[0].medium.kind == "image" else media.sounds(entries)


def _batch(model, tokens: Tokens, media: Media, prompts: list[Prompt], most: int) -> list[list[int]]:
    longest = max(len(prompt.ids) for prompt in prompts)
    padding = [longest - len(prompt.ids) for prompt in prompts]
    ids = torch.tensor([[tokens.pad] * pad + prompt.ids for pad, prompt in zip(padding, prompts)], device=media.device)
    before = torch.tensor(padding, device=media.device)[:, None]
    places = torch.arange(longest, device=media.device)[None, :] - before
    seen = places >= 0
    stops = torch.tensor(tokens.stops, device=media.device)
    cache = DynamicCache(config=model.config.get_text_config())
    common = {"past_key_values": cache, "use_cache": True, "logits_to_keep": 1}
    mask = (lambda: {"attention_mask": seen}) if any(padding) else (lambda: {})
    output = model(input_ids=ids, position_ids=places.clamp_min(0), **mask(), **common, **_inputs(media, prompts))
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=media.device)
    written = []
    for number in range(most):
        chosen = output.logits[:, -1].argmax(-1)
        written.append(chosen)
        ended |= torch.isin(chosen, stops)
        if ended.all():
            break
        seen = torch.nn.functional.pad(seen, (0, 1), value=True)
        output = model(input_ids=chosen[:, None], position_ids=longest + number - before, **mask(), **common)
    rows = torch.stack(written, 1).tolist()
    return [_to_stop(row, tokens.stops) for row in rows]


def _to_stop(row: list[int], stops: list[int]) -> list[int]:
    for at, token in enumerate(row):
        if token in stops:
            return row[: at + 1]
    return row
