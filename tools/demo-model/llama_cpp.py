#!/usr/bin/env python3
"""What llama.cpp writes with the same file, after the same token numbers: fills the lists `llama_cpp` of demo.refs.json.

    llama_cpp.py models/demo.gguf testdata/demo/demo.refs.json

llama.cpp refuses files that also hold vision and audio, so it reads a copy without these tensors; every other byte is the file's
own. Keys and values are kept in float32, and no work is left to a GPU. What remains different from transformers is that llama.cpp
rounds activations to eight bits before it multiplies them with quantised weights.
"""

import argparse
import hashlib
import tempfile
from importlib.metadata import version
from pathlib import Path

import xllamacpp

import references
from gguf_file import GgufFile

#: How the names of the towers' tensors begin, and of those that lead from the towers to the decoder.
TOWERS = ("v.", "a.", "mm.")
CONTEXT = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=Path, help="the model")
    parser.add_argument("references", type=Path, help="demo.refs.json, which is written anew")
    options = parser.parse_args()
    about, prompts = references.read(options.references, "prompts")
    if hashlib.sha256(options.gguf.read_bytes()).hexdigest() != about["sha256"]:
        raise SystemExit(f"{options.references} was made with another file than {options.gguf}")
    file = GgufFile(options.gguf)
    stops = file.metadata["tokenizer.ggml.eos_token_ids"]
    with tempfile.TemporaryDirectory() as folder:
        text_only = Path(folder) / "text.gguf"
        file.copy(text_only, lambda name: not name.startswith(TOWERS))
        server = _server(text_only)
        for prompt in prompts:
            prompt["llama_cpp"] = _greedy(server, prompt["ids"], about["greedy_steps"], stops)
    about["llama_cpp"] = f"llama.cpp as in xllamacpp {version('xllamacpp')}, with keys and values in float32, on the file without its towers"
    references.write(options.references, about, "prompts", prompts)
    _tell(prompts)


def _server(path: Path) -> xllamacpp.Server:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.n_gpu_layers = CONTEXT, 1, 0
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.warmup, params.verbosity = False, -1
    return xllamacpp.Server(params)


def _greedy(server: xllamacpp.Server, ids: list[int], steps: int, stops: list[int]) -> list[int]:
    """Token numbers; the token that ends the reply is the last."""
    # Probabilities are asked for because the tokens come with them.
    reply = server.handle_completions({"prompt": ids, "n_predict": steps, "temperature": 0, "cache_prompt": False, "logprobs": 1})
    if "choices" not in reply:
        raise SystemExit(f"llama.cpp: {reply}")
    written = [token["id"] for token in reply["choices"][0]["logprobs"]["content"]]
    if len(written) != reply["usage"]["completion_tokens"]:
        raise SystemExit(f"llama.cpp wrote {reply['usage']['completion_tokens']} tokens and told {len(written)}")
    end = next((place for place, token in enumerate(written) if token in stops), steps)
    return written[: end + 1]


def _tell(prompts: list[dict]) -> None:
    """Says where llama.cpp goes another way than transformers."""
    print(f"llama.cpp: {sum(p['llama_cpp'] == p['greedy'] for p in prompts)} of {len(prompts)} replies are those of transformers")
    for number, prompt in enumerate(prompts):
        pairs = list(zip(prompt["llama_cpp"], prompt["greedy"]))
        apart = next((place for place, (one, other) in enumerate(pairs) if one != other), None)
        if apart is not None:
            print(f"  prompt {number}, {prompt['task']}: another token at {apart}, where the margin is {prompt['margins'][apart]}")


if __name__ == "__main__":
    main()
