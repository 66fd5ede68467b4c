#!/usr/bin/env python3
"""Makes what Hugging Face, torchvision, Pillow, ffmpeg and sox give for small images and sounds.

    python make.py FIXTURES

FIXTURES holds the references of the towers: tiny-e2b.mm.safetensors and multimodal/tiny-12b.mm.safetensors. Needs transformers
5.22.2, torch 2.15, torchvision 0.29, Pillow, numpy, safetensors; and ffmpeg 5.1, sox 14.4 and ImageMagick 6 of Debian 12.
Writes beside itself:

towers.safetensors    patches, positions and mel frames, cut out of FIXTURES
prepared.json         sizes of images, and SHA-256 of resized ones; the images are noise that the tests make again
mel.safetensors       mel frames of signals that the tests make again
files/                small files in every format
files.safetensors     their pixels, as Pillow decodes them for Hugging Face
"""
import hashlib, json, pathlib, random, subprocess, sys

import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors.numpy import load_file, save_file
from transformers.models.gemma4.feature_extraction_gemma4 import Gemma4AudioFeatureExtractor
from transformers.models.gemma4.image_processing_gemma4 import Gemma4ImageProcessor, get_aspect_ratio_preserving_size

HERE = pathlib.Path(__file__).parent
FIXTURES = pathlib.Path(sys.argv[1])
FILES = HERE / "files"
FILES.mkdir(exist_ok=True)

# The towers' own references.
e2b = load_file(FIXTURES / "tiny-e2b.mm.safetensors")
b12 = load_file(FIXTURES / "multimodal/tiny-12b.mm.safetensors")
kept = {f"tiny-e2b.{name}": e2b[name] for name in ["mel", "mel_mask"]}
for image in ["image", "image_small"]:
    kept |= {f"tiny-e2b.{image}.{name}": e2b[f"{image}.{name}"] for name in ["patches_first8", "position_ids"]}
for image in ["image", "image70", "image70b"]:
    kept |= {f"tiny-12b.{image}.{name}": b12[f"{image}.{name}"] for name in ["patches_first2", "position_ids"]}
kept |= {f"tiny-12b.{sound}.last_frame": b12[f"{sound}.last_frame"] for sound in ["audio", "audio2"]}
save_file(kept, HERE / "towers.safetensors")


def noise(count):
    """Bytes of a linear congruential generator, which the tests repeat."""
    state, made = 1, bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        made.append(state >> 24)
    return bytes(made)


# Sizes, and resized noise.
random.seed(17)
sides = [1, 2, 3, 16, 47, 48, 49, 95, 100, 301, 640, 768, 1000, 1920, 4999, 5000, 9999]
sizes = [(640, 480), (1024, 1024), (1920, 1080), (100, 1000), (1, 1), (1, 5000), (5000, 1)]
sizes += [(random.choice(sides), random.choice(sides)) for _ in range(100)]
sizes += [(random.randint(1, 4000), random.randint(1, 4000)) for _ in range(100)]
fits = []
for index, (width, height) in enumerate(sizes):
    budget = [280, 70, 140, 560, 1120][index % 5]
    fitted = get_aspect_ratio_preserving_size(height, width, 16, budget * 9, 3)
    fits.append([width, height, budget, fitted[1], fitted[0]])
resized = []
for width, height, budget in [(1, 1, 70), (3, 2, 70), (37, 53, 70), (48, 48, 140), (301, 200, 280), (640, 480, 280), (999, 1001, 280),
                              (1, 5000, 280), (5000, 1, 280), (7, 1500, 70), (1920, 80, 560), (1200, 900, 1120), (2000, 1500, 70)]:
    pixels = np.frombuffer(noise(width * height * 3), np.uint8).reshape(height, width, 3)
    values = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    processor = Gemma4ImageProcessor(max_soft_tokens=budget)
    size = get_aspect_ratio_preserving_size(height, width, 16, budget * 9, 3)
    given = processor(values, do_rescale=False, return_tensors="np")["pixel_values"][0]
    count = size[0] // 16 * (size[1] // 16)
    patches = given[:count].reshape(size[0] // 16, size[1] // 16, 16, 16, 3).transpose(0, 2, 1, 3, 4)
    image = np.ascontiguousarray(patches).reshape(size[0], size[1], 3)
    assert (image == image.round()).all() and image.min() >= 0 and image.max() <= 255
    digest = hashlib.sha256(image.astype(np.uint8).tobytes()).hexdigest()
    resized.append({"from": [width, height], "budget": budget, "to": [size[1], size[0]], "sha256": digest})
(HERE / "prepared.json").write_text(json.dumps({"fits": fits, "resized": resized}) + "\n")

# Mel frames: noise, a loud square wave that clips, a tone, silence, and lengths around a frame.
extractor = Gemma4AudioFeatureExtractor()
signals = {
    "noise": np.array([byte / 128 - 1 for byte in noise(8000)], np.float32),
    "clipped": np.array([1.0 if at // 40 % 2 else -1.0 for at in range(6000)], np.float32),
    "tone": (0.5 * np.sin(2 * np.pi * 440 * np.arange(4000) / 16000)).astype(np.float32),
    "silence": np.zeros(1600, np.float32),
    "frame": np.full(161, 0.25, np.float32),
    "two": np.full(321, 0.25, np.float32),
}
mel = {}
for name, samples in signals.items():
    given = extractor([samples], sampling_rate=16000, return_tensors="np")
    mel[name] = given["input_features"][0][given["input_features_mask"][0].astype(bool)].astype(np.float32)
save_file(mel, HERE / "mel.safetensors")

# Images in files.
y, x = np.mgrid[0:16, 0:24]
smooth = np.stack([x * 10, y * 15, 255 - x * 5 - y * 6], axis=2).astype(np.uint8)
alpha = ((x + y) * 6).astype(np.uint8)
rgb = Image.fromarray(smooth)
rgba = Image.fromarray(np.dstack([smooth, alpha]))


def run(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True, cwd=FILES)


def raw_png(name, values, color):
    """A PNG of sixteen bits, which Pillow does not write in colour."""
    import struct, zlib
    body = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", 24, 16, 16, color, 0, 0, 0)
    written = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b"")
    (FILES / name).write_bytes(b"\x89PNG\r\n\x1a\n" + written)


rgb.save(FILES / "rgb.png")
rgba.save(FILES / "rgba.png")
rgb.convert("L").save(FILES / "grey.png")
Image.merge("LA", [rgb.convert("L"), Image.fromarray(alpha)]).save(FILES / "grey-alpha.png")
rgb.convert("1").save(FILES / "bits.png")
rgb.quantize(16).save(FILES / "palette.png", transparency=3)
run("/usr/bin/convert", "rgb.png", "-interlace", "PNG", "-define", "png:exclude-chunks=date,time", "interlaced.png")
deep = smooth.astype(np.uint16) * 257 // 3 * 2 + 77
raw_png("rgb16.png", deep, 2)
raw_png("grey16.png", deep[:, :, 0], 0)
rgb.save(FILES / "colour.jpg", quality=92)
rgb.save(FILES / "progressive.jpg", quality=92, progressive=True)
rgb.convert("L").save(FILES / "grey.jpg", quality=92)
rgb.convert("CMYK").save(FILES / "cmyk.jpg", quality=92)
for orientation in range(2, 9):
    exif = Image.Exif()
    exif[0x0112] = orientation
    rgb.save(FILES / f"turned-{orientation}.jpg", quality=92, exif=exif)
exif = Image.Exif()
exif[0x0112] = 6
rgb.save(FILES / "turned.png", exif=exif)
rgb.save(FILES / "turned.webp", exif=exif, lossless=True)
rgb.save(FILES / "lossy.webp", quality=90)
rgba.save(FILES / "lossless.webp", lossless=True, exact=True)
colours = rgb.quantize(32)
colours.save(FILES / "animated.gif", save_all=True, append_images=[colours.transpose(Image.Transpose.FLIP_LEFT_RIGHT)])
rgb.save(FILES / "rgb.bmp")
rgb.quantize(16).save(FILES / "palette.bmp")
run("/usr/bin/convert", "palette.bmp", "-compress", "RLE", "packed.bmp")
pixels = {}
for file in sorted(FILES.iterdir()):
    if file.suffix in {".png", ".jpg", ".webp", ".gif", ".bmp"}:
        pixels[file.name] = np.array(ImageOps.exif_transpose(Image.open(file)).convert("RGB"))
# Pillow cuts grey of sixteen bits off at 255 and gives a white image; it takes the upper byte of colours.
pixels["grey16.png"] = np.repeat((deep[:, :, :1] >> 8).astype(np.uint8), 3, axis=2)
save_file(pixels, HERE / "files.safetensors")

# Sound in files: 0.3 s of 440 Hz on the left and 660 Hz on the right, or 440 Hz in mono, at half the amplitude.
run("sox", "-D", "-n", "-r", "44100", "-c", "2", "-b", "16", "stereo.wav", "synth", "0.3", "sine", "440", "sine", "660", "vol", "0.5")
run("sox", "-D", "-n", "-r", "44100", "-c", "1", "-b", "16", "mono.wav", "synth", "0.3", "sine", "440", "vol", "0.5")
plain = ["-fflags", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1", "-y"]
for name, options in {
    "stereo.flac": ["-c:a", "flac"], "stereo.mp3": ["-c:a", "libmp3lame", "-b:a", "128k"],
    "stereo.ogg": ["-c:a", "libvorbis", "-q:a", "5"], "stereo.m4a": ["-c:a", "aac", "-b:a", "128k"],
}.items():
    run("ffmpeg", "-i", "stereo.wav", *options, *plain, name)
for name, rate, codec in [("u8-8000.wav", 8000, "pcm_u8"), ("s24-16000.wav", 16000, "pcm_s24le"), ("f32-48000.wav", 48000, "pcm_f32le"),
                          ("alaw-8000.wav", 8000, "pcm_alaw")]:
    run("ffmpeg", "-i", "mono.wav", "-ar", rate, "-c:a", codec, *plain, name)
run("ffmpeg", "-i", "mono.wav", "-c:a", "libmp3lame", "-b:a", "64k", "-metadata", "title=A tone", *plain[:4], "-id3v2_version", "3", "-y", "tagged.mp3")
run("ffmpeg", "-i", "mono.wav", "-c:a", "libopus", "-b:a", "32k", *plain, "-f", "ogg", "mono.opus")
# Half a second of near silence and half a second of noise, in packets of various sizes and without a header that counts them.
run("sox", "-R", "-D", "-n", "-r", "44100", "-c", "1", "-b", "16", "varied.wav", "synth", "1", "whitenoise", "fade", "t", "0.8")
run("ffmpeg", "-i", "varied.wav", "-c:a", "libmp3lame", "-q:a", "9", "-write_xing", "0", *plain, "headless.mp3")
(FILES / "varied.wav").unlink()
run("sox", "-D", HERE / "tiny-e2b.wav", "-r", "44100", "-b", "16", HERE / "tiny-e2b-44100.flac", "rate", "-v", "-s")
(FILES / "mono.wav").unlink()
