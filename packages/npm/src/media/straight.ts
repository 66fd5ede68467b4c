// Reads pixels with the colours that transparent ones have in the file, which a two-dimensional canvas does not keep.

/** The pixels; undefined in a browser that has neither of the ways to read them. */
export async function straightPixels(bitmap: ImageBitmap): Promise<Uint8Array<ArrayBuffer> | undefined> {
  return byTexture(bitmap) ?? (await byFrame(bitmap));
}

/** By WebGL; undefined where there is none, or the image is too large for it. */
function byTexture(bitmap: ImageBitmap): Uint8Array<ArrayBuffer> | undefined {
  const gl = typeof OffscreenCanvas === "undefined" ? null : new OffscreenCanvas(1, 1).getContext("webgl");
  if (!gl) {
    return undefined;
  }
  try {
    return readTexture(gl, bitmap);
  } finally {
    // Browsers allow few contexts at a time.
    gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}

function readTexture(gl: WebGLRenderingContext, bitmap: ImageBitmap): Uint8Array<ArrayBuffer> | undefined {
  const { width, height } = bitmap;
  if (Math.max(width, height) > (gl.getParameter(gl.MAX_TEXTURE_SIZE) as number)) {
    return undefined;
  }
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
  gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, gl.getParameter(gl.TEXTURE_BINDING_2D) as WebGLTexture, 0);
  if (gl.checkFramebufferStatus(gl.FRAMEBUFFER) !== gl.FRAMEBUFFER_COMPLETE) {
    return undefined;
  }
  const pixels = new Uint8Array(4 * width * height);
  gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  return gl.getError() === gl.NO_ERROR ? pixels : undefined;
}

/** By a frame of a video; undefined where there are none, or they can't be read as RGBA. */
async function byFrame(bitmap: ImageBitmap): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const { width, height } = bitmap;
  if (typeof VideoFrame === "undefined") {
    return undefined;
  }
  let frame: VideoFrame | undefined;
  try {
    frame = new VideoFrame(bitmap, { timestamp: 0 });
    const options: VideoFrameCopyToOptions = { format: "RGBA", layout: [{ offset: 0, stride: 4 * width }] };
    const pixels = new Uint8Array(4 * width * height);
    await frame.copyTo(pixels, options);
    return pixels;
  } catch {
    return undefined;
  } finally {
    frame?.close();
  }
}
