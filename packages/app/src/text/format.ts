// Numbers for people: sizes, speeds, times, dates.

const UNITS = ["B", "KB", "MB", "GB", "TB"];

/** A size in decimal units, as browsers and disks use them. */
export function bytes(count: number): string {
  if (!Number.isFinite(count) || count < 0) {
    return "unknown size";
  }
  let unit = 0;
  let value = count;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** A size in binary units, as GPU limits use them. */
export function binaryBytes(count: number): string {
  const unit = count >= 2 ** 30 ? 3 : count >= 2 ** 20 ? 2 : count >= 1024 ? 1 : 0;
  const value = count / 1024 ** unit;
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
}

export function bytesPerSecond(rate: number): string {
  return `${bytes(rate)}/s`;
}

/** The remaining time, rounded: it is an estimate. */
export function timeLeft(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) {
    return "";
  }
  if (seconds < 5) {
    return "a few seconds left";
  }
  if (seconds < 60) {
    return `${Math.round(seconds / 5) * 5} seconds left`;
  }
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) {
    return minutes === 1 ? "a minute left" : `${minutes} minutes left`;
  }
  const hours = Math.floor(minutes / 60);
  return `${hours} h ${minutes % 60} min left`;
}

/** A duration that has passed. */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 1) {
    return `${Math.round(milliseconds)} ms`;
  }
  if (seconds < 60) {
    return `${seconds.toFixed(1)} s`;
  }
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** A rate of tokens, with significant digits only. */
export function tokensPerSecond(rate: number): string {
  if (!Number.isFinite(rate) || rate <= 0) {
    return "–";
  }
  return `${rate >= 100 ? Math.round(rate) : rate.toFixed(1)} tokens/s`;
}

/** A count with separators between thousands. */
export function count(value: number): string {
  return value.toLocaleString("en");
}

/** How many parameters a model has. */
export function parameters(value: number): string {
  if (value >= 1e9) {
    return `${(value / 1e9).toFixed(1)}B`;
  }
  if (value >= 1e6) {
    return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)}M`;
  }
  return count(value);
}

/** "1 message", "2 messages". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

const DAY = 24 * 60 * 60 * 1000;

/** The heading for chats of this time. */
export function age(time: number, now: number): string {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (time >= midnight) {
    return "Today";
  }
  if (time >= midnight - DAY) {
    return "Yesterday";
  }
  if (time >= midnight - 7 * DAY) {
    return "Last 7 days";
  }
  return new Date(time).toLocaleDateString("en", { month: "long", year: "numeric" });
}

/** A date for the name of a file. */
export function fileDate(time: number): string {
  return new Date(time).toISOString().slice(0, 16).replace("T", "-").replace(":", "");
}
