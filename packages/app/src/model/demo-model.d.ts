/** What the build knows of the demo model; see vite/demo-model.ts. */
declare module "virtual:demo-model" {
  export const url: string;
  /** An image and a sound that the demo model knows what to say about. */
  export const image: string;
  export const sound: string;
  export const bytes: number;
  export const sha256: string;
}
