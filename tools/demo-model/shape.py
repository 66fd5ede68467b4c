"""The demo model's shape: Gemma 4 E2B's architecture in small, and how each matrix is stored in the file.

Every matrix that is stored by K-quants has rows of a multiple of 256 values, because such is one block of theirs.
"""

LAYERS = 8
WIDTH = 256
PER_LAYER_WIDTH = 256

#: Two rounds of three sliding layers and a global one; the second round borrows keys and values and is twice as wide.
LAYER_TYPES = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 2


def config(token_numbers: dict[str, int], vocabulary: int) -> dict:
    """config.json, for transformers."""
    return {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "dtype": "float32",
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "boi_token_id": token_numbers["<|image>"],
        "eoi_token_id": token_numbers["<image|>"],
        "image_token_id": token_numbers["<|image|>"],
        "boa_token_id": token_numbers["<|audio>"],
        "eoa_token_index": token_numbers["<audio|>"],
        "audio_token_id": token_numbers["<|audio|>"],
        "video_token_id": token_numbers["<|video|>"],
        "text_config": {
            "model_type": "gemma4_text",
            "vocab_size": vocabulary,
            "vocab_size_per_layer_input": vocabulary,
            "hidden_size": WIDTH,
            "hidden_size_per_layer_input": PER_LAYER_WIDTH,
            "intermediate_size": 512,
            "use_double_wide_mlp": True,
            "num_hidden_layers": LAYERS,
            "num_kv_shared_layers": LAYERS // 2,
            "layer_types": LAYER_TYPES,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "num_global_key_value_heads": None,
            "head_dim": 64,
            "global_head_dim": 128,
            "per_layer_config": {str(i): {"head_dim": 128} for i, kind in enumerate(LAYER_TYPES) if kind == "full_attention"},
            "attention_k_eq_v": False,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "sliding_window": 512,
            "max_position_embeddings": 131072,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
            },
            "final_logit_softcapping": 30.0,
            "hidden_activation": "gelu_pytorch_tanh",
            "rms_norm_eps": 1e-6,
            "initializer_range": 0.02,
            "use_bidirectional_attention": None,
            "enable_moe_block": False,
            "pad_token_id": token_numbers["<pad>"],
            "bos_token_id": token_numbers["<bos>"],
            "eos_token_id": token_numbers["<eos>"],
            "tie_word_embeddings": True,
        },
        "vision_config": {
            "model_type": "gemma4_vision",
            "hidden_size": 256,
            "intermediate_size": 512,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "head_dim": 64,
            "patch_size": 16,
            "pooling_kernel_size": 3,
            # Enough for an image of ten to one at the usual budget; the real table of 10,240 would be larger than the model.
            "position_embedding_size": 160,
            "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0},
            "hidden_activation": "gelu_pytorch_tanh",
            "rms_norm_eps": 1e-6,
            "max_position_embeddings": 131072,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "standardize": False,
            "use_clipped_linears": True,
        },
        "audio_config": {
            "model_type": "gemma4_audio",
            "hidden_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "output_proj_dims": 256,
            "subsampling_conv_channels": [128, 32],
            "conv_kernel_size": 5,
            "attention_chunk_size": 12,
            "attention_context_left": 13,
            "attention_context_right": 0,
            "attention_logit_cap": 50.0,
            "residual_weight": 0.5,
            "rms_norm_eps": 1e-6,
            "gradient_clipping": 1e10,
            "use_clipped_linears": True,
        },
    }


def generation_config(token_numbers: dict[str, int]) -> dict:
    return {
        "bos_token_id": token_numbers["<bos>"],
        "eos_token_id": [token_numbers["<eos>"], token_numbers["<turn|>"], token_numbers["<|tool_response>"]],
        "pad_token_id": token_numbers["<pad>"],
        "do_sample": True, "temperature": 1.0, "top_k": 64, "top_p": 0.95,
    }


def processor_config() -> dict:
    """preprocessor settings of the released models; images fill a budget of 280 rows."""
    return {
        "processor_class": "Gemma4Processor",
        "image_seq_length": 280,
        "audio_seq_length": 750,
        "image_processor": {"image_processor_type": "Gemma4ImageProcessor", "patch_size": 16, "pooling_kernel_size": 3, "max_soft_tokens": 280, "do_resize": True, "resample": 3, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": False, "image_mean": [0.0] * 3, "image_std": [1.0] * 3},
        "feature_extractor": {"feature_extractor_type": "Gemma4AudioFeatureExtractor", "sampling_rate": 16000, "feature_size": 128, "frame_length": 320, "hop_length": 160, "fft_length": 512},
    }
