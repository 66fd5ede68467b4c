// The names of images and sounds in messages as JSON: numbers of media between page and service, names of attachments in the engine.

interface Named {
  images?: string[];
  audio?: string[];
}

/** Messages, or one message, with other names. */
export function renamed(json: string, rename: (name: string) => string): string {
  const messages = JSON.parse(json) as Named | Named[];
  const one = (message: Named): Named => ({
    ...message,
    ...(message.images ? { images: message.images.map(rename) } : {}),
    ...(message.audio ? { audio: message.audio.map(rename) } : {}),
  });
  return JSON.stringify(Array.isArray(messages) ? messages.map(one) : one(messages));
}

/** All names in messages, in the order in which the model reads them. */
export function namesIn(json: string): string[] {
  const messages = JSON.parse(json) as Named[];
  return messages.flatMap(({ images = [], audio = [] }) => [...images, ...audio]);
}
