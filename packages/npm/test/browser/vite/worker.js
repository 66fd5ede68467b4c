// The page's own worker: nothing but the engine.

import "rullama/worker";
