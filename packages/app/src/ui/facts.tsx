// Short facts in one line, separated by dots; and facts as a list of names and values.

import type { ComponentChildren } from "preact";

export function Facts({ words }: { words: readonly (string | undefined)[] }) {
  const known = words.filter((word) => word !== undefined && word !== "");
  return (
    <>
      {known.map((word, index) => (
        <>
          {index > 0 && " · "}
          <span class="fact">{word}</span>
        </>
      ))}
    </>
  );
}

/** Rows without a value are left out. */
export function FactsList({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts-list">
      {rows
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
    </dl>
  );
}
