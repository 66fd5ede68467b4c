// Subgroups for wgpu, which neither asks a browser for them nor can be told to (gfx-rs/wgpu issue 10146).
//
// WGSL reaches the browser as we write it, so all that is missing is the feature in the call that opens the device. That
// call is recognised by its label, and nobody else's devices change. The engine asks the device itself what it has. This
// file goes when wgpu maps the feature; see docs/decisions/0010-subgroups-in-browsers.md.

/** What the engine calls its devices. */
const LABEL = "rullama";

/** Features that our kernels use and wgpu does not ask for. */
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

/** Makes the engine's devices have the features of their adapter that wgpu leaves out. Doing it twice changes nothing. */
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
