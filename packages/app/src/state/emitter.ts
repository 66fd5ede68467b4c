// Tells whoever listens that something happened. All the reactivity this app has.

export class Emitter<T = void> {
  readonly #listeners = new Set<(value: T) => void>();

  /** Listens until the function that this gives back is called. */
  on(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells everybody. One that fails is reported like any uncaught error, and keeps nothing from the others or the caller. */
  emit(value: T): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(value);
      } catch (error) {
        reportError(error);
      }
    }
  }
}
