import { describe, expect, it } from "vitest";
import { hasLittleMemory, memoryOptions } from "../../src/tight.js";

const IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile/15E148 Safari/604.1";
const MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/19.0 Safari/605.1.15";

describe("devices with little memory", () => {
  it("are told by what browsers say of them", () => {
    expect(hasLittleMemory({ deviceMemory: 8, userAgent: MAC })).toBe(false);
    expect(hasLittleMemory({ deviceMemory: 4 })).toBe(true);
    expect(hasLittleMemory({ userAgent: IPHONE })).toBe(true);
    expect(hasLittleMemory({ userAgent: MAC, maxTouchPoints: 0 })).toBe(false);
    expect(hasLittleMemory({ userAgent: MAC, maxTouchPoints: 5 })).toBe(true);
    expect(hasLittleMemory({ deviceMemory: 8, userAgentData: { mobile: true } })).toBe(true);
    expect(hasLittleMemory({ deviceMemory: 8, largestBuffer: 256 << 20 })).toBe(true);
    expect(hasLittleMemory({ deviceMemory: 8, largestBuffer: 1 << 30 })).toBe(false);
    expect(hasLittleMemory({})).toBe(false);
  });

  it("keep tables in the file and conversations short, unless told otherwise", () => {
    expect(memoryOptions({}, false)).toEqual({});
    expect(memoryOptions({ context: 9 }, false)).toEqual({ context: 9 });
    expect(memoryOptions({ keepTowers: true }, true)).toMatchObject({ keep_towers: true });
    expect(memoryOptions({}, true)).toEqual({ context: 1024, residency: "rows", rows: 64, keep_towers: false });
    expect(memoryOptions({ context: 4096 }, true)).toEqual({ context: 4096, residency: "rows", rows: 64, keep_towers: false });
    expect(memoryOptions({ residency: "gpu" }, true)).toEqual({ context: 1024, residency: "gpu", rows: 64, keep_towers: false });
  });
});
