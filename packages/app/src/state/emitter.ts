// Tells whoever listens that something happened. All the reactivity this app has.

export class Emitter<T = void> {
  readonly #listeners = new Set<(value: T) => void>();

  /** Listens until the function that this gives back is called. */
  on(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(value: T): void {
    [...this.#listeners].forEach((listener) => listener(value));
  }
}
