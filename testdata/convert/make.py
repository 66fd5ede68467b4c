#!/usr/bin/env python3
"""Makes nano-e2b: a checkpoint with the structure of Gemma 4 E2B and random weights, and what others make of it.

    python make.py LLAMA_CPP

LLAMA_CPP is a copy of https://github.com/ggml-org/llama.cpp, for its converter. Needs transformers 5.22.2, torch,
safetensors, sentencepiece and numpy. Writes beside itself:

nano-e2b/               the checkpoint, in several files, matrices in BF16, the vision tower in F16, the rest in F32
nano-e2b.expected.json  metadata of llama.cpp's file; of each tensor that its converter writes in F32, shape and SHA-256;
                        a text and the tokens that Hugging Face makes of it
nano-e2b.expected.safetensors  logits of Hugging Face for `ids`, and tensors that are computed rather than copied
"""
import hashlib, json, pathlib, shutil, subprocess, sys, tempfile

import torch
from safetensors.torch import save_file
from transformers import AutoModelForImageTextToText, AutoTokenizer, Gemma4Config

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "nano-e2b"
LLAMA_CPP = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(LLAMA_CPP / "gguf-py"))
import gguf  # noqa: E402

# The tokenizer: special tokens at other ids than the real ones, all bytes, ASCII and a few merges.
BEFORE = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>",
          "<|tool_response>", "<tool_response|>", "<|\"|>", "<|think|>", "<|channel>", "<channel|>", "<|turn>", "<turn|>"]
AFTER = ["<|image>", "<|audio>", "<|image|>", "<|audio|>", "<image|>", "<audio|>", "<|video|>"]
WORDS = ["the", "▁the", "▁a", "▁of", "in", "▁in", "and", "▁and", "ing", "user", "model", "\n\n", "▁▁"]
characters = [chr(c) for c in range(0x21, 0x7F)] + ["▁", "\n", "\t", "é", "ü"]
pieces, merges = list(characters), []
for word in WORDS:
    made = word[0]
    for character in word[1:]:
        if [made, character] not in merges:
            merges.append([made, character])
        made += character
        if made not in pieces:
            pieces.append(made)
tokens = BEFORE + [f"<0x{b:02X}>" for b in range(256)] + pieces + AFTER
vocab = {text: id for id, text in enumerate(tokens)}
assert len(vocab) == len(tokens)
special = [{"id": vocab[t], "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True} for t in BEFORE + AFTER]
tokenizer = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
    "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
    "post_processor": None,
    "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
    "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
              "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
              "vocab": vocab, "merges": merges},
}

config = Gemma4Config(
    text_config=dict(
        vocab_size=len(tokens), vocab_size_per_layer_input=len(tokens), hidden_size=32, intermediate_size=48,
        num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, head_dim=16, global_head_dim=32,
        hidden_size_per_layer_input=8, num_kv_shared_layers=2, use_double_wide_mlp=True, sliding_window=6,
        layer_types=["sliding_attention", "full_attention"] * 2, final_logit_softcapping=30.0,
        max_position_embeddings=4096, bos_token_id=2, eos_token_id=1, pad_token_id=0),
    vision_config=dict(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        head_dim=16, patch_size=4, position_embedding_size=10, use_clipped_linears=True),
    audio_config=dict(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, subsampling_conv_channels=[128, 4],
        output_proj_dims=24, use_clipped_linears=True),
    boi_token_id=vocab["<|image>"], boa_token_id=vocab["<|audio>"], image_token_id=vocab["<|image|>"],
    audio_token_id=vocab["<|audio|>"], eoi_token_id=vocab["<image|>"], eoa_token_index=vocab["<audio|>"],
    video_token_id=vocab["<|video|>"])

torch.manual_seed(1)
model = AutoModelForImageTextToText.from_config(config, attn_implementation="eager").eval()
random = torch.Generator().manual_seed(2)
draw = lambda p: torch.randn(p.shape, generator=random)
with torch.no_grad():
    for name, p in [*model.named_parameters(), *model.named_buffers()]:
        if not p.is_floating_point() or "inv_freq" in name or "embed_scale" in name:
            continue
        if name.endswith(("_min", "_max")):
            p.copy_((4 + torch.rand(p.shape, generator=random)) * (-1 if name.endswith("_min") else 1))
        elif p.dim() <= 1:
            p.copy_((0 if "bias" in name else 1) + 0.2 * draw(p))
        else:
            p.copy_(draw(p) * p.shape[-1] ** -0.5)
            kind = torch.float16 if "vision_tower" in name else torch.bfloat16
            p.copy_(p.to(kind).float())

shutil.rmtree(FOLDER, ignore_errors=True)
model.save_pretrained(FOLDER)
(FOLDER / "model.safetensors").unlink()
state = {name: p.detach() for name, p in model.state_dict().items() if name != "lm_head.weight"}
for name, p in state.items():
    if p.dim() > 1:
        state[name] = p.to(torch.float16 if "vision_tower" in name else torch.bfloat16)
# In several files, as large checkpoints are.
parts = {"text": "language_model", "vision": "vision", "audio": "audio"}
index = {}
for number, (part, word) in enumerate(parts.items(), 1):
    file = f"model-{number:05}-of-{len(parts):05}.safetensors"
    mine = {name: p.contiguous() for name, p in state.items() if word in name}
    save_file(mine, FOLDER / file, metadata={"format": "pt"})
    index |= {name: file for name in mine}
assert set(index) == set(state), set(state) - set(index)
write = lambda name, value: (FOLDER / name).write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")
write("model.safetensors.index.json", {"metadata": {}, "weight_map": dict(sorted(index.items()))})
write("tokenizer.json", tokenizer)
write("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<bos>", "eos_token": "<eos>",
      "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>", "additional_special_tokens": BEFORE[5:] + AFTER})
write("generation_config.json", {"do_sample": True, "temperature": 1.0, "top_k": 64, "top_p": 0.95, "bos_token_id": 2,
      "eos_token_id": [vocab["<eos>"], vocab["<turn|>"], vocab["<|tool_response>"]], "pad_token_id": 0})
write("preprocessor_config.json", {"image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0], "patch_size": 4})
(FOLDER / "chat_template.jinja").write_text(
    "{{- bos_token -}}{%- for message in messages -%}{{- '<|turn>' + message['role'] + '\\n' + message['content'] + "
    "'<turn|>\\n' -}}{%- endfor -%}\n", encoding="utf-8")

# What Hugging Face computes, from the files.
loaded = AutoModelForImageTextToText.from_pretrained(FOLDER, attn_implementation="eager", dtype=torch.float32).eval()
ids = [2] + torch.randint(17, len(tokens) - len(AFTER), (15,), generator=random).tolist()
with torch.no_grad():
    expected = {"logits": loaded(input_ids=torch.tensor([ids])).logits[0].float().contiguous()}

text = "<|turn>user\nthe é  in ☃ and a thing<turn|>"
text_ids = AutoTokenizer.from_pretrained(FOLDER)(text, add_special_tokens=False)["input_ids"]

# What llama.cpp's converter makes of it. Its names for the audio tower differ from Ollama's.
def ollama(name):
    name = name.replace("a.pre_encode.out.", "mm.a.fc.").replace("a.input_projection.", "a.pre_encode.out.")
    if name == "mm.a.pre_encode.out.weight":
        return "mm.a.input_projection.weight"
    block, _, rest = name.rpartition(".blk.0.") if name.startswith("a.") else ("", "", "")
    renamed = {"ln2.weight": "layer_pre_norm.weight", "attn_pre_norm.weight": "ln1.weight",
               "attn_post_norm.weight": "ln2.weight", "attn_k_rel.weight": "linear_pos.weight"}
    return f"a.blk.0.{renamed[rest]}" if rest in renamed else name

tensors, metadata = {}, {}
with tempfile.TemporaryDirectory() as folder:
    for more in [], ["--mmproj"]:
        file = f"{folder}/model{len(more)}.gguf"
        subprocess.run([sys.executable, LLAMA_CPP / "convert_hf_to_gguf.py", FOLDER, "--outfile", file, "--outtype", "f32",
                        *more], check=True, capture_output=True)
        reader = gguf.GGUFReader(file)
        for tensor in reader.tensors:
            assert tensor.tensor_type == gguf.GGMLQuantizationType.F32, tensor.name
            name, values = ollama(tensor.name), tensor.data.tobytes()
            tensors[name] = {"dims": [int(d) for d in tensor.shape], "sha256": hashlib.sha256(values).hexdigest()}
            if "per_dim_scale" in name:
                expected[name] = torch.tensor(tensor.data.copy()).flatten()
        if not more:
            for key, field in reader.fields.items():
                if key.startswith(("gemma4.", "tokenizer.", "general.sampling", "general.arch", "general.file_type")):
                    metadata[key] = {"type": "/".join(t.name for t in field.types[:2]), "value": field.contents()}
save_file(expected, HERE / "nano-e2b.expected.safetensors")
lines = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in sorted(tensors.items())]
keys = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in metadata.items()]
(HERE / "nano-e2b.expected.json").write_text(
    '{"ids": ' + json.dumps(ids) + ',\n"text": ' + json.dumps(text, ensure_ascii=False) + ',\n"text_ids": '
    + json.dumps(text_ids) + ',\n"metadata": {\n' + ",\n".join(keys) + '\n},\n"tensors": {\n' + ",\n".join(lines)
    + "\n}}\n", encoding="utf-8")
