"""A sub-vocabulary of Gemma 4's tokenizer.

It keeps every special token, every byte, the single characters of plain text, the tokens that Gemma's own tokenizer makes
of our texts, and the commonest English ones until it is full; and of each kept token all tokens that it is merged from.
All merges whose parts and whole are kept stay, in their order. So a text that consists of kept tokens becomes the very same
tokens as with the whole vocabulary, only with other numbers.
"""

import json
import re
import string
from pathlib import Path

from gguf_file import GgufFile

SIZE = 4096
_SPECIAL_AT_FRONT = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>', "<|think|>", "<|channel>", "<channel|>", "<|turn>", "<turn|>")
# As in the real vocabulary, those of images and sounds have the last numbers.
_SPECIAL_AT_END = ("<|image>", "<|audio>", "<|image|>", "<|audio|>", "<image|>", "<audio|>", "<|video|>")
SPECIALS = _SPECIAL_AT_FRONT + _SPECIAL_AT_END
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_SPACES = tuple("\n" * n for n in range(1, 5)) + tuple("▁" * n for n in range(1, 9)) + ("\t",)
_CHARACTERS = tuple(string.ascii_letters + string.digits + string.punctuation) + tuple("éèüöäß“”‘’–—…×÷·›€°")
_ENGLISH = re.compile(r"▁?[A-Za-z]+|▁?[a-z]+'|'[a-z]+|▁?[(\"`-]|[?.!,:;]")


class FullVocabulary:
    """The tokenizer in a GGUF file."""

    def __init__(self, path: Path):
        metadata = GgufFile(path).metadata
        self.tokens: list[str] = metadata["tokenizer.ggml.tokens"]
        self.numbers = {token: number for number, token in enumerate(self.tokens)}
        self.merges = [_parts(merge) for merge in metadata["tokenizer.ggml.merges"]]
        self.ranks = {}
        for rank, merge in enumerate(self.merges):
            self.ranks.setdefault(merge, rank)
        self.chat_template: str = metadata.get("tokenizer.chat_template", "")

    def split(self, text: str) -> tuple[list[str], set[str]]:
        """The tokens of a text without specials, and all tokens that occurred on the way."""
        pieces, seen = [], set()
        for run in re.findall(r"[^\n]+|\n+", text.replace(" ", "▁")):
            symbols = [run] if run[0] == "\n" and run in self.numbers else list(run)
            seen.update(symbols)
            while len(symbols) > 1:
                rank, at = min((self.ranks.get(pair, len(self.merges)), i) for i, pair in enumerate(zip(symbols, symbols[1:])))
                if rank == len(self.merges):
                    break
                symbols[at: at + 2] = [symbols[at] + symbols[at + 1]]
                seen.add(symbols[at])
            pieces += symbols
        return pieces, seen


def _parts(merge: str) -> tuple[str, str]:
    at = merge.index(" ", 1)
    return merge[:at], merge[at + 1:]


def choose(full: FullVocabulary, texts: list[str], size: int = SIZE) -> list[str]:
    """The tokens to keep, in the order of their new numbers."""
    words: dict[str, None] = {}
    for text in texts:
        # No merge of the vocabulary goes over a word's end into the next word, so words stand for texts.
        for run in re.split(f"({'|'.join(map(re.escape, SPECIALS))})", text):
            if run not in SPECIALS:
                words.update(dict.fromkeys(re.findall(r" ?[^ \n]+|\n+| +", run)))
    kept: set[str] = set(_SPACES + _CHARACTERS)
    for word in words:
        kept |= full.split(word)[1]
    kept = {token for token in kept if token in full.numbers}
    for token in full.tokens[494:]:
        if len(kept) + len(SPECIALS) + len(_BYTES) >= size:
            break
        if token in kept or not _ENGLISH.fullmatch(token):
            continue
        pieces, seen = full.split(token.replace("▁", " "))
        if pieces == [token] and len(kept | seen) + len(SPECIALS) + len(_BYTES) <= size:
            kept |= seen
    kept -= set(SPECIALS)
    ordered = sorted(kept, key=full.numbers.__getitem__)
    spaces = [token for token in ordered if full.numbers[token] < full.numbers["<0x00>"]]
    rest = [token for token in ordered if full.numbers[token] >= full.numbers["<0x00>"]]
    tokens = [*_SPECIAL_AT_FRONT, *spaces, *_BYTES, *rest, *_SPECIAL_AT_END]
    if len(tokens) > size:
        raise ValueError(f"the texts need {len(tokens)} tokens; there is room for {size}")
    # A few numbers may be left: the file has exactly `size` rows.
    unused = [f"<unused{n}>" for n in range(size - len(tokens))]
    return [*tokens[: -len(_SPECIAL_AT_END)], *unused, *_SPECIAL_AT_END]


def tokenizer_json(full: FullVocabulary, tokens: list[str]) -> dict:
    numbers = {token: number for number, token in enumerate(tokens)}
    merges = [list(m) for m in dict.fromkeys(full.merges) if m[0] in numbers and m[1] in numbers and m[0] + m[1] in numbers]
    bos = {"SpecialToken": {"id": "<bos>", "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": numbers[text], "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            for text in sorted(SPECIALS, key=numbers.__getitem__)
        ],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [bos, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [bos, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<bos>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [numbers["<bos>"]], "tokens": ["<bos>"]}},
        },
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": numbers, "merges": merges},
    }


def write(full: FullVocabulary, tokens: list[str], folder: Path) -> None:
    """tokenizer.json, tokenizer_config.json and chat_template.jinja, as transformers reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>",
        "additional_special_tokens": list(SPECIALS[5:]), "add_bos_token": True, "clean_up_tokenization_spaces": False, "model_max_length": 131072,
        "chat_template": full.chat_template,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(full, tokens), ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False, indent=1), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(full.chat_template, encoding="utf-8")
