// A line to a server that can be cut: a port of its own, from which bytes go to the server and back. A page that was opened through
// it is without a network once it is cut, its service worker and its other workers included, in every browser.

import { connect, createServer } from "node:net";

/** A line to the server at `origin`. `cut()` breaks all connections and refuses new ones; `mend()` takes them again. */
export async function lineTo(origin) {
  const { hostname, port } = new URL(origin);
  const sockets = new Set();
  const listener = createServer((socket) => {
    const other = connect(Number(port), hostname);
    for (const [one, its] of [[socket, other], [other, socket]]) {
      sockets.add(one);
      one.on("error", () => its.destroy());
      one.on("close", () => {
        sockets.delete(one);
        its.destroy();
      });
      one.pipe(its);
    }
  });
  const listen = (at) =>
    new Promise((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(at, "127.0.0.1", () => {
        listener.off("error", reject);
        resolve();
      });
    });
  await listen(0);
  const own = listener.address().port;
  const cut = () =>
    new Promise((resolve) => {
      listener.close(resolve);
      sockets.forEach((socket) => socket.destroy());
    });
  return { origin: `http://127.0.0.1:${own}`, cut, mend: () => listen(own), close: cut };
}
