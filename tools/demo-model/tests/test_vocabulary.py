"""The sub-vocabulary splits texts as the whole one does, and the file stays small."""

import re
import unittest
from functools import lru_cache
from pathlib import Path

import tokenizers

import examples
import names
import shape
import storage
import vocabulary
from talk import seeded

FULL = Path(__file__).resolve().parents[3] / "testdata" / "tokenizer" / "gemma4-vocab.gguf"


@lru_cache(maxsize=1)
def _made():
    import json
    full = vocabulary.FullVocabulary(FULL)
    tokens = vocabulary.choose(full, examples.every_text())
    return full, tokens, tokenizers.Tokenizer.from_str(json.dumps(vocabulary.tokenizer_json(full, tokens)))


class Vocabulary(unittest.TestCase):
    def test_size_and_order(self):
        _, tokens, tokenizer = _made()
        self.assertEqual(len(tokens), vocabulary.SIZE)
        self.assertEqual(len(set(tokens)), vocabulary.SIZE)
        self.assertEqual(tokens[:5], ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"])
        self.assertEqual(tokens[-1], "<|video|>")
        for text in vocabulary.SPECIALS:
            self.assertEqual(tokenizer.encode(text, add_special_tokens=False).ids, [tokens.index(text)])

    def test_closed_under_merges(self):
        full, tokens, _ = _made()
        kept = set(tokens)
        for token in tokens:
            if token in vocabulary.SPECIALS or re.fullmatch(r"<0x..>|<unused\d+>", token) or len(token) == 1:
                continue
            self.assertLessEqual(full.split(token.replace("▁", " "))[1], kept, token)

    def test_our_texts_split_as_with_the_whole_vocabulary(self):
        full, _, tokenizer = _made()
        random_source = seeded("vocabulary test")
        texts = [text for _ in range(150) for text, _ in examples._without_mistypes(examples.conversation(random_source)).segments()]
        texts += random_source.sample(examples.every_text(), 400)
        for text in texts:
            expected = []
            for run in re.split(f"({'|'.join(map(re.escape, vocabulary.SPECIALS))})", text):
                expected += [run] if run in vocabulary.SPECIALS else full.split(run)[0]
            self.assertEqual(tokenizer.encode(text, add_special_tokens=False).tokens, expected)

    def test_every_text_comes_back(self):
        _, _, tokenizer = _made()
        for text in (*examples.every_text()[::40], "Ünïcödé 你好 🦙\ttab\n\n\nlines   and   spaces", "MiXeD 12345 $%^&*"):
            self.assertEqual(tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids, skip_special_tokens=False), text)

    def test_segments_join_without_other_tokens(self):
        _, _, tokenizer = _made()
        random_source = seeded("segments")
        for _ in range(200):
            segments = examples.conversation(random_source).segments()
            apart = [number for text, _ in segments for number in tokenizer.encode(text, add_special_tokens=False).ids]
            self.assertEqual(tokenizer.encode("".join(text for text, _ in segments), add_special_tokens=False).ids, apart)


class FileSize(unittest.TestCase):
    def test_file_is_small_and_rows_are_whole_blocks(self):
        total = 0
        for name, extents in _shapes().items():
            target = names.gguf_name(name)
            format = storage.format_of(target, len(extents))
            if format in ("Q4_K", "Q6_K"):
                self.assertEqual(extents[-1] % 256, 0, name)
            total += storage.bytes_of(target, extents)
        # Tokens, merges, the chat template and the list of tensors take less than 300 kB.
        self.assertLess(total + 300_000, 16_000_000)
        self.assertGreater(total, 14_000_000)


def _shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes of the matrices, from the configuration alone."""
    config = shape.config({text: 0 for text in vocabulary.SPECIALS}, vocabulary.SIZE)
    text, vision, audio = config["text_config"], config["vision_config"], config["audio_config"]
    width, layers, per_layer = text["hidden_size"], text["num_hidden_layers"], text["hidden_size_per_layer_input"]
    found = {
        "model.language_model.embed_tokens.weight": (vocabulary.SIZE, width),
        "model.language_model.embed_tokens_per_layer.weight": (vocabulary.SIZE, layers * per_layer),
        "model.language_model.per_layer_model_projection.weight": (layers * per_layer, width),
        "model.vision_tower.patch_embedder.input_proj.weight": (vision["hidden_size"], 768),
        "model.vision_tower.patch_embedder.position_embedding_table": (2, vision["position_embedding_size"], vision["hidden_size"]),
        "model.embed_vision.embedding_projection.weight": (width, vision["hidden_size"]),
        "model.embed_audio.embedding_projection.weight": (width, audio["output_proj_dims"]),
        "model.audio_tower.output_proj.weight": (audio["output_proj_dims"], audio["hidden_size"]),
        "model.audio_tower.subsample_conv_projection.input_proj_linear.weight": (audio["hidden_size"], 1024),
        "model.audio_tower.subsample_conv_projection.layer1.conv.weight": (32, 128, 3, 3),
    }
    for i, kind in enumerate(text["layer_types"]):
        shared = i >= layers - text["num_kv_shared_layers"]
        head = text["global_head_dim"] if kind == "full_attention" else text["head_dim"]
        wide = text["intermediate_size"] * (2 if shared else 1)
        part = f"model.language_model.layers.{i}."
        found |= {
            part + "self_attn.q_proj.weight": (text["num_attention_heads"] * head, width), part + "self_attn.o_proj.weight": (width, text["num_attention_heads"] * head),
            part + "mlp.gate_proj.weight": (wide, width), part + "mlp.up_proj.weight": (wide, width), part + "mlp.down_proj.weight": (width, wide),
            part + "per_layer_input_gate.weight": (per_layer, width), part + "per_layer_projection.weight": (width, per_layer),
        }
        if not shared:
            found |= {part + f"self_attn.{x}_proj.weight": (head, width) for x in "kv"}
    size, inner = vision["hidden_size"], vision["intermediate_size"]
    for i in range(vision["num_hidden_layers"]):
        part = f"model.vision_tower.encoder.layers.{i}."
        found |= {part + f"self_attn.{x}_proj.linear.weight": (size, size) for x in "qkvo"}
        found |= {part + "mlp.gate_proj.linear.weight": (inner, size), part + "mlp.up_proj.linear.weight": (inner, size), part + "mlp.down_proj.linear.weight": (size, inner)}
    size = audio["hidden_size"]
    for i in range(audio["num_hidden_layers"]):
        part = f"model.audio_tower.layers.{i}."
        for n in (1, 2):
            found |= {part + f"feed_forward{n}.ffw_layer_1.linear.weight": (4 * size, size), part + f"feed_forward{n}.ffw_layer_2.linear.weight": (size, 4 * size)}
        found |= {part + f"self_attn.{x}.linear.weight": (size, size) for x in ("q_proj", "k_proj", "v_proj", "post")}
        found |= {part + "self_attn.relative_k_proj.weight": (size, size), part + "lconv1d.linear_start.linear.weight": (2 * size, size), part + "lconv1d.linear_end.linear.weight": (size, size)}
    return found
