/** What the build knows of the demo model; see vite/demo-model.ts. */
declare module "virtual:demo-model" {
  export const url: string;
  export const bytes: number;
  export const sha256: string;
}
