// A page that is loaded when it is first shown, so that the first visit downloads less.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorBox } from "./error-box";

type State = { kind: "loading" } | { kind: "ready"; Page: ComponentType } | { kind: "failed"; error: unknown };

/** The component that `load` gives, once it is there. */
export function lazy(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined;
  return function Lazy() {
    const [state, setState] = useState<State>(loaded ? { kind: "ready", Page: loaded } : { kind: "loading" });
    useEffect(() => {
      if (state.kind !== "loading") {
        return;
      }
      let outdated = false;
      load().then(
        (Page) => {
          loaded = Page;
          if (!outdated) {
            setState({ kind: "ready", Page });
          }
        },
        (error: unknown) => !outdated && setState({ kind: "failed", error }),
      );
      return () => {
        outdated = true;
      };
    }, [state.kind]);
    if (state.kind === "ready") {
      const { Page } = state;
      return <Page />;
    }
    return (
      <section class="page" aria-busy={state.kind === "loading"}>
        {state.kind === "failed" && <ErrorBox error={state.error} steps={{ retry: { label: "Try again", run: () => setState({ kind: "loading" }) } }} />}
      </section>
    );
  };
}
