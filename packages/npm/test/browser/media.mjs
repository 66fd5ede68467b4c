// What images and sounds become in a browser: the pixels that Pillow decodes, and the tones that were written; and projectors of models.
// How the demo model sees and hears is in demo.mjs.

import { readFile } from "node:fs/promises";
import { pageTest } from "./in-page.mjs";

export { setUp } from "./in-page.mjs";

const media = new URL("../../../../testdata/media/", import.meta.url);

/** Pixels of a file of tensors, by the name of the image. */
async function expectedPixels() {
  const file = await readFile(new URL("files.safetensors", media));
  const length = Number(file.readBigUInt64LE());
  const data = file.subarray(8 + length);
  return Object.entries(JSON.parse(file.subarray(8, 8 + length))).map(([name, { shape, data_offsets: [from, to] }]) => ({
    name,
    shape,
    bytes: [...data.subarray(from, to)],
  }));
}

/** A file as a data URL. */
async function dataUrl(name) {
  return `data:;base64,${(await readFile(new URL(`files/${name}`, media))).toString("base64")}`;
}

async function dataUrls(...names) {
  return Promise.all(names.map(async (name) => [name, await dataUrl(name)]));
}

const images = pageTest({
  title: "images have the pixels that Pillow decodes for Hugging Face, also where they are transparent",
  quick: true,
  async prepare() {
    // Browsers do not turn WebP files.
    const expected = (await expectedPixels()).filter(({ name }) => name !== "turned.webp");
    return { images: await Promise.all(expected.map(async (image) => ({ ...image, url: await dataUrl(image.name) }))) };
  },
  async body(_, { images }, assert) {
    const { decodeImage } = await import("/dist/media/image.js");
    for (const { name, shape, bytes, url } of images) {
      const { rgba, width, height } = await decodeImage(url);
      assert.equal([height, width, 3], shape, name);
      // Decoders of formats that lose information round differently, and so do those of 16 bits.
      const allowed = /jpg$|^lossy|16\.png$/.test(name) ? 4 : 0;
      const rgb = rgba.filter((_, at) => at % 4 < 3);
      const difference = rgb.reduce((most, value, at) => Math.max(most, Math.abs(value - bytes[at])), 0);
      assert(difference <= allowed, `${name} differs by ${difference}`);
    }
  },
});

const sources = pageTest({
  title: "an image may be a file, an address, a canvas, a bitmap or pixels, of any size",
  async prepare() {
    return { files: await dataUrls("rgb.png", "stereo.mp3") };
  },
  async body(_, { files: [[, png], [, mp3]] }, assert) {
    const { decodeImage, keepImage } = await import("/dist/media/image.js");
    // Several tiles of the canvas by which pixels are read.
    const [width, height] = [2100, 2070];
    const pixels = new ImageData(width, height);
    new Uint32Array(pixels.data.buffer).forEach((_, at, data) => (data[at] = (at * 2654435761) | 0xff000000));
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    const element = Object.assign(document.createElement("canvas"), { width, height });
    element.getContext("2d").drawImage(canvas, 0, 0);
    const bitmap = await createImageBitmap(canvas);
    const kept = await Promise.all([pixels, canvas, element, bitmap].map(keepImage));
    // What happens to them later does not matter.
    const expected = pixels.data.slice();
    pixels.data.fill(7);
    canvas.getContext("2d").clearRect(0, 0, width, height);
    element.width = 1;
    bitmap.close();
    for (const source of kept) {
      const { rgba, ...size } = await decodeImage(source);
      assert.equal(size, { width, height });
      assert(rgba.every((value, at) => value === expected[at]), `${source} has other pixels`);
    }
    await assert.fails(() => keepImage(bitmap), "media.image.empty");
    const file = await (await fetch(png)).blob();
    const address = URL.createObjectURL(file);
    for (const source of [file, address, new URL(address)]) {
      assert.equal((await decodeImage(source)).width, 24);
    }
    await assert.fails(() => decodeImage(file.slice(0, 40)), "media.image.broken");
    await assert.fails(() => decodeImage(mp3), "media.image.unknown");
    const missing = await assert.fails(() => decodeImage("/models/none.png?missing"), "source.status");
    assert.equal(missing.details.status, 403);
  },
  // The console has the error of the server.
  expected: /403/,
});

const sounds = pageTest({
  title: "sounds are the tones that were written, with all channels mixed, at 16 kHz",
  quick: true,
  async prepare() {
    return { files: await dataUrls("stereo.wav", "stereo.flac", "stereo.mp3", "stereo.ogg", "u8-8000.wav", "s24-16000.wav", "f32-48000.wav", "rgb.png") };
  },
  async body(_, { files }, assert) {
    const { decodeSound, keepSound } = await import("/dist/media/sound.js");
    /** How loud a tone is in a sound: an amplitude. */
    const loudness = (samples, frequency) => {
      const part = (wave) => (2 * samples.reduce((sum, sample, at) => sum + sample * wave((2 * Math.PI * frequency * at) / 16_000), 0)) / samples.length;
      return Math.hypot(part(Math.sin), part(Math.cos));
    };
    const check = (name, samples) => {
      assert(Math.abs(samples.length - 4800) < 1500, `${name}: ${samples.length} samples`);
      // A tenth of a second, in which both tones have whole waves.
      const middle = samples.subarray(1600, 3200);
      const stereo = name.startsWith("stereo");
      for (const [frequency, amplitude] of [[440, stereo ? 0.25 : 0.5], [660, stereo ? 0.25 : 0], [880, 0]]) {
        const found = loudness(middle, frequency);
        // LAME makes every sound quieter, by a twentieth.
        assert(Math.abs(found - amplitude) < 0.02, `${name} has ${found} at ${frequency} Hz`);
      }
    };
    const image = files.pop();
    for (const [name, url] of files) {
      check(name, (await decodeSound(url)).samples);
    }
    // At another rate, as a page may have decoded it.
    const [name, url] = files[0];
    const buffer = await new OfflineAudioContext(1, 1, 44_100).decodeAudioData(await (await fetch(url)).arrayBuffer());
    const kept = await keepSound(buffer);
    buffer.getChannelData(0).fill(0);
    check(name, (await decodeSound(kept)).samples);
    const own = Float32Array.of(0.5, -2, 1);
    assert.equal([...(await decodeSound(own)).samples], [0.5, -2, 1]);
    await assert.fails(() => decodeSound(image[1]), "media.sound.unknown");
    await assert.fails(() => decodeSound(new Blob(["RIFF    WAVE and nothing else"])), "media.sound.broken");
  },
});

const inWorker = pageTest({
  title: "a worker decodes images and takes samples, but has no decoder for files of sounds",
  async prepare() {
    return { png: await dataUrl("rgba.png"), wav: await dataUrl("stereo.wav") };
  },
  async body(_, { png, wav }, assert) {
    const work = async () => {
      const { decodeImage } = await import("ORIGIN/dist/media/image.js");
      const { decodeSound } = await import("ORIGIN/dist/media/sound.js");
      self.onmessage = async ({ data: { png, wav } }) => {
        const { rgba } = await decodeImage(png);
        const { samples } = await decodeSound(Float32Array.of(1, 2));
        const refused = await decodeSound(wav).catch((error) => error.code);
        self.postMessage([[...rgba.slice(0, 6)], [...samples], refused]);
      };
      self.postMessage("ready");
    };
    const text = `(${work})();`.replaceAll("ORIGIN", location.origin);
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })), { type: "module" });
    const told = () => new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data)));
    assert.equal(await told(), "ready");
    worker.postMessage({ png, wav });
    assert.equal(await told(), [[0, 0, 255, 0, 10, 0], [1, 2], "media.sound.no_decoder"]);
    worker.terminate();
  },
});

const projectors = pageTest({
  title: "a projector beside a model lets it see and hear, from the network and from the store",
  webgpu: false,
  async prepare() {
    return { png: await dataUrl("rgb.png") };
  },
  async body({ Engine, inspect, ModelStore }, { origin, png }, assert) {
    const model = `${origin}/models/tiny-12b-Q8_0.gguf`;
    const projector = `${origin}/models/tiny-12b-mmproj-f16.gguf`;
    const takes = ({ media: { image, audio } }) => [image, audio];
    assert.equal([takes(await inspect(model)), takes(await inspect(model, { projector }))], [[false, false], [true, true]]);
    const options = { think: false, temperature: 0, maxTokens: 4, imageBudget: 70, ignoreEos: true };
    const messages = [{ role: "user", content: "What is this?", images: [png] }];

    const blind = await Engine.load(model, { context: 256 });
    await assert.fails(() => blind.chat(messages, options).result(), "model.no_images");
    await blind.unload();

    const file = await (await fetch(projector)).blob();
    const replies = [];
    for (const given of [{ projector }, { projector: file, keepTowers: false }, { projector, store: { name: "mine" } }, { projector: { stored: "tiny-12b-mmproj-f16.gguf" } }]) {
      const engine = await Engine.load(model, { context: 256, ...given });
      assert.equal(takes(engine.info), [true, true]);
      // Twice: towers that are not kept are read again.
      for (const imageBudget of [70, 140]) {
        const { ids, usage } = await engine.chat(messages, { ...options, imageBudget }).result();
        assert(usage.promptTokens > 0.8 * imageBudget, `${usage.promptTokens} tokens with an image`);
        replies.push(ids);
      }
      await engine.unload();
    }
    assert.equal(replies.slice(2), [0, 1, 2].flatMap(() => replies.slice(0, 2)), "the replies");
    const store = await ModelStore.open();
    assert.equal((await store.list()).map(({ name }) => name).toSorted(), ["mine", "tiny-12b-mmproj-f16.gguf"]);
    store.close();
  },
});

export const tests = [images, sources, sounds, inWorker, projectors];
