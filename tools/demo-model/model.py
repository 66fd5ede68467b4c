"""The model of transformers with a start that trains well, and its checkpoint folder."""

import json
import shutil
from pathlib import Path

import torch
from transformers import Gemma4AudioModel, Gemma4Config, Gemma4ForConditionalGeneration

import shape
from names import gguf_name
from storage import format_of


# The audio tower computes its attention itself, but the name decides what kind of mask it is given. Versions that offer "sdpa" for
# it need that: their "eager" gives it a mask that means the opposite.
_ATTENTION = {"": "sdpa", "text_config": "sdpa", "vision_config": "sdpa", "audio_config": "sdpa" if Gemma4AudioModel._supports_sdpa else "eager"}


def build(tokenizer, seed: int = 1) -> Gemma4ForConditionalGeneration:
    torch.manual_seed(seed)
    config = Gemma4Config(**{k: v for k, v in shape.config(tokenizer.get_vocab(), tokenizer.get_vocab_size()).items() if k not in ("architectures", "model_type")})
    config._attn_implementation = _ATTENTION
    model = Gemma4ForConditionalGeneration(config).float()
    _start(model)
    return model


@torch.no_grad()
def _start(model: Gemma4ForConditionalGeneration) -> None:
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and module is not model.lm_head:
            torch.nn.init.normal_(module.weight, std=module.in_features**-0.5)
        # Queries and keys are normed and their product is not scaled down: without this, attention begins as hard choices.
        if name.endswith(("q_norm", "k_norm")):
            module.weight.fill_(module.weight.numel() ** -0.25)
    # Each part begins by adding little, so that the input is still heard at the top.
    for layer in model.model.language_model.layers:
        for norm in (layer.post_attention_layernorm, layer.post_feedforward_layernorm, layer.post_per_layer_input_norm):
            norm.weight.fill_(0.4)
    torch.nn.init.normal_(model.model.language_model.embed_tokens.weight, std=0.05)
    torch.nn.init.normal_(model.model.language_model.embed_tokens_per_layer.weight, std=0.05)
    torch.nn.init.normal_(model.model.vision_tower.patch_embedder.position_embedding_table, std=0.3)
    torch.nn.init.normal_(model.model.vision_tower.patch_embedder.input_proj.weight, std=0.06)


def train_layer_scales(model: Gemma4ForConditionalGeneration) -> None:
    """Layer scales are buffers in transformers; as parameters under the same name they are trained and saved alike."""
    for layer in model.model.language_model.layers:
        scale = layer.layer_scalar
        del layer._buffers["layer_scalar"]
        layer.layer_scalar = torch.nn.Parameter(scale.detach().clone())


def stored_tensors(model) -> dict[str, tuple[torch.Tensor, str]]:
    """What the file will hold: name in the file, tensor of the model, format."""
    found = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        target = gguf_name(name)
        if target is not None:
            found[target] = (tensor, format_of(target, tensor.dim()))
    return found


def save(model, tokenizer_folder: Path, folder: Path) -> None:
    """A checkpoint folder as transformers and the converter read it."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder, safe_serialization=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (tokenizer_folder / name).resolve() != (folder / name).resolve():
            shutil.copyfile(tokenizer_folder / name, folder / name)
    numbers = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    (folder / "generation_config.json").write_text(json.dumps(shape.generation_config(numbers), indent=1), encoding="utf-8")
    (folder / "processor_config.json").write_text(json.dumps(shape.processor_config(), indent=1), encoding="utf-8")


def load(folder: Path, tokenizer=None) -> Gemma4ForConditionalGeneration:
    """The checkpoint; where there is none, a model of that shape, for weights that come from a GGUF file."""
    if not (folder / "model.safetensors").exists():
        return build(tokenizer).eval()
    return Gemma4ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32, attn_implementation=_ATTENTION).eval()
