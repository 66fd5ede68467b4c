// A page as its author would write it, to be built by Vite.

import { Engine } from "rullama";
import { generateTwo } from "./generate.js";

globalThis.testBody = () => generateTwo(Engine, {});
