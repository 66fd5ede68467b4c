// A syntax tree as Preact nodes. Text becomes text and nothing else, so nothing that a model writes runs or is fetched.

import type { List, ListItem, PhrasingContent, Table } from "mdast";
import type { ComponentChildren, VNode } from "preact";
import { safeAddress } from "./address";
import { CodeBlock } from "./code-block";
import { Maths } from "./maths-view";
import type { Definitions, Node } from "./parse";

export interface Context {
  definitions: Definitions;
  /** Whether no further text can come, so that code may be highlighted. */
  finished: boolean;
}

/** A reply stands below the headings of the page. */
const HEADING_OFFSET = 2;

/** Levels of nodes; deeper ones are shown as their text. */
const DEEPEST = 60;

type AnyNode = Node | PhrasingContent | ListItem;

/** The node without its children, which the caller gives: those of one node, or of several that belong together. */
export function container(node: AnyNode, children: ComponentChildren, context: Context): ComponentChildren {
  switch (node.type) {
    case "paragraph":
      return <p>{children}</p>;
    case "heading": {
      const Tag = `h${Math.min(6, node.depth + HEADING_OFFSET)}` as "h3";
      return <Tag>{children}</Tag>;
    }
    case "blockquote":
      return <blockquote>{children}</blockquote>;
    case "list":
      return node.ordered ? <ol start={node.start === 1 ? undefined : (node.start ?? undefined)}>{children}</ol> : <ul>{children}</ul>;
    case "table":
      return (
        <div class="table-frame" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead>{tableRow(node, 0, context)}</thead>
            <tbody>{children}</tbody>
          </table>
        </div>
      );
    case "plain":
      return <p class="plain">{children}</p>;
    case "emphasis":
      return <em>{children}</em>;
    case "strong":
      return <strong>{children}</strong>;
    case "delete":
      return <del>{children}</del>;
    default:
      return children;
  }
}

/** The children of a node, for its container. */
export function contents(node: AnyNode, context: Context, depth = 0): ComponentChildren {
  switch (node.type) {
    case "plain":
      return node.value;
    case "list":
      return node.children.map((item) => listItem(node, item, context, depth + 1));
    case "table":
      return node.children.slice(1).map((_, row) => tableRow(node, row + 1, context));
    default:
      return "children" in node ? node.children.map((child) => render(child, context, depth + 1)) : undefined;
  }
}

function render(node: AnyNode, context: Context, depth: number): ComponentChildren {
  if (depth > DEEPEST) {
    return plainText(node);
  }
  switch (node.type) {
    case "text":
    case "html":
      return node.value;
    case "inlineCode":
      return <code>{node.value}</code>;
    case "break":
      return <br />;
    case "thematicBreak":
      return <hr />;
    case "code":
      return <CodeBlock language={node.lang ?? ""} text={node.value} finished={context.finished} />;
    case "maths":
      return <Maths tex={node.value} source={node.source} display={node.display} />;
    case "link":
      return link(node.url, contents(node, context, depth));
    case "linkReference":
      return link(context.definitions.get(labelOf(node))?.node.url, contents(node, context, depth));
    case "image":
      // A picture would be fetched from a server that the text names; its description is a link to it instead.
      return link(node.url, node.alt);
    case "imageReference":
      return link(context.definitions.get(labelOf(node))?.node.url, node.alt);
    default:
      return container(node, contents(node, context, depth), context);
  }
}

/** A block of its own, outside of any other. */
export function renderBlock(node: Node, context: Context): ComponentChildren {
  return render(node, context, 0);
}

/** Definitions are kept by their label in upper case, as micromark normalises it. */
function labelOf({ identifier }: { identifier: string }): string {
  return identifier.toUpperCase();
}

function link(url: string | undefined, children: ComponentChildren): ComponentChildren {
  const href = url === undefined ? undefined : safeAddress(url);
  if (href === undefined) {
    return children;
  }
  const empty = children === undefined || children === null || children === "" || (Array.isArray(children) && children.length === 0);
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {empty ? href : children}
    </a>
  );
}

function listItem(list: List, item: ListItem, context: Context, depth: number): VNode {
  const loose = list.spread === true || list.children.some(({ spread }) => spread === true);
  const task = typeof item.checked === "boolean";
  return (
    <li class={task ? "task" : undefined}>
      {task && <input type="checkbox" disabled checked={item.checked === true} aria-label={item.checked ? "done" : "not done"} />}
      {item.children.map((child) =>
        // The items of a tight list have no margins between their lines.
        child.type === "paragraph" && !loose ? contents(child, context, depth) : render(child, context, depth + 1),
      )}
    </li>
  );
}

function tableRow(table: Table, index: number, context: Context): VNode {
  const cells = table.children[index]?.children ?? [];
  const columns = table.align?.length ?? cells.length;
  const Tag = index === 0 ? "th" : "td";
  return (
    <tr>
      {cells.slice(0, columns).map((cell, column) => (
        <Tag scope={index === 0 ? "col" : undefined} class={table.align?.[column] ? `align-${table.align[column]}` : undefined}>
          {cell.children.map((child) => (child.type === "text" ? withBreaks(child.value) : render(child, context, 3)))}
        </Tag>
      ))}
      {cells.length < columns && <td colSpan={columns - cells.length} />}
    </tr>
  );
}

/** A cell has no other way to write a line break, and models know this one. */
function withBreaks(text: string): ComponentChildren {
  return text.includes("<") ? text.split(/<br ?\/?>/i).map((line, index) => (index === 0 ? line : [<br />, line])) : text;
}

/** The text of a node, found without recursion. */
function plainText(node: AnyNode): string {
  let text = "";
  const rest: AnyNode[] = [node];
  for (let next = rest.pop(); next; next = rest.pop()) {
    if ("value" in next) {
      text += next.value;
    } else if ("children" in next) {
      rest.push(...(next.children as AnyNode[]).toReversed());
    }
  }
  return text;
}
