// Samples as a WAV file: mono, 16 bits. Every browser plays it, and every program reads it.

const HEADER = 44;

export function wavFile(samples: Float32Array, rate: number): Blob {
  const view = new DataView(new ArrayBuffer(HEADER + samples.length * 2));
  const text = (at: number, letters: string) => [...letters].forEach((letter, index) => view.setUint8(at + index, letter.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, view.byteLength - 8, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  // Samples as they are, one channel.
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, samples.length * 2, true);
  samples.forEach((sample, index) => view.setInt16(HEADER + index * 2, Math.round(Math.max(-1, Math.min(1, sample)) * 0x7fff), true));
  return new Blob([view.buffer], { type: "audio/wav" });
}
