// Files to and from the user's disk.

/** Saves a file to the user's disk. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // By then the browser has opened the file.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Asks the user to choose files. Resolves to an empty list if they cancel. `camera`: phones open the camera instead. */
export function pickFiles(accept: string, multiple: boolean, { camera = false } = {}): Promise<File[]> {
  return new Promise((resolve) => {
    const input = document.createElement("input");
    Object.assign(input, { type: "file", accept, multiple, className: "hidden-input", tabIndex: -1 });
    input.setAttribute("aria-label", "File");
    if (camera) {
      input.setAttribute("capture", "environment");
    }
    const finish = () => {
      resolve([...(input.files ?? [])]);
      input.remove();
    };
    input.addEventListener("change", finish);
    input.addEventListener("cancel", finish);
    document.body.append(input);
    input.click();
  });
}
