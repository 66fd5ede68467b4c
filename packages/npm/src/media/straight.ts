// Reads pixels with the colours that transparent ones have in the file, which a two-dimensional canvas does not keep.

/** The pixels; undefined where there is no WebGL, or the image is too large for it. */
export function straightPixels(bitmap: ImageBitmap): Uint8Array<ArrayBuffer> | undefined {
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
