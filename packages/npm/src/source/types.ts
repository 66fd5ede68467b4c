/** Where bytes of a model come from. */
export interface ByteSource { readonly length: number; readonly name: string; read(offset: number, length: number): Promise<Uint8Array>; close?(): void }
