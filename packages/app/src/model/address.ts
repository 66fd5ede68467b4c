// Addresses of model files as users paste them.

import { downloadUrl } from "rullama";

/** The address of the file itself, also where the user copied the address of the page about a file on Hugging Face. */
export function fileAddress(typed: string): string {
  return downloadUrl(typed.trim());
}
