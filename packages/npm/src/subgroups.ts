// Enables subgroups on the engine's WebGPU devices. wgpu does not request this feature in browsers (gfx-rs/wgpu issue 10146).
//
// wgpu passes our WGSL to the browser unchanged, so only the feature is missing from the call that opens the device. This file adds it
// to calls with the engine's label; devices of other code stay as they are. The engine then asks the device which features it has.
// Delete this file when wgpu maps the feature; see docs/decisions/0010-subgroups-in-browsers.md.

/** The label of the engine's devices. */
const LABEL = "rullama";

/** Features that our kernels use and wgpu does not request. */
const FEATURES = ["subgroups"];

interface Adapter {
  readonly features: ReadonlySet<string>;
  requestDevice(descriptor?: Descriptor): Promise<unknown>;
}

interface Descriptor {
  label?: string;
  requiredFeatures?: Iterable<string>;
}

const WRAPPED = Symbol.for("rullama.requestDevice");

/** Requests these features for the engine's devices if their adapter has them. Calling this twice changes nothing. */
export function passOnFeatures(scope: { GPUAdapter?: { prototype: Adapter } } = globalThis as never): void {
  const prototype = scope.GPUAdapter?.prototype as (Adapter & { [WRAPPED]?: true }) | undefined;
  if (!prototype || prototype[WRAPPED]) {
    return;
  }
  const requestDevice = prototype.requestDevice;
  prototype.requestDevice = function (this: Adapter, descriptor?: Descriptor): Promise<unknown> {
    if (descriptor?.label !== LABEL) {
      return requestDevice.call(this, descriptor);
    }
    const wanted = FEATURES.filter((feature) => this.features.has(feature));
    const requiredFeatures = [...new Set([...(descriptor.requiredFeatures ?? []), ...wanted])];
    return requestDevice.call(this, { ...descriptor, requiredFeatures });
  };
  prototype[WRAPPED] = true;
}
