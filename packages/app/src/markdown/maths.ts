// Maths as an extension of micromark and of mdast-util-from-markdown.
//
// Between single dollars, `$x$`, it stands in a line; between `$$` or `\[` and `\]` it is displayed on lines of its own; `\(` and `\)`
// are the brackets that models often write for single dollars. The rules keep prices out: a single dollar opens maths only if no
// letter, digit or space is next to it on the wrong side, and the very next dollar must be able to close it.
//
// No scan goes past the next dollar or the next opening bracket of its kind, so all scans together are linear.

import type { CompileContext, Extension as TreeExtension, Token } from "mdast-util-from-markdown";
import type { Code, Construct, Effects, Extension, State, TokenizeContext } from "micromark-util-types";

export interface MathsNode {
  type: "maths";
  /** The TeX between the marks. */
  value: string;
  display: boolean;
  /** The text with its marks, for the time before KaTeX is loaded and for TeX that it refuses. */
  source: string;
}

declare module "mdast" {
  interface RootContentMap {
    maths: MathsNode;
  }
  interface PhrasingContentMap {
    maths: MathsNode;
  }
}

declare module "micromark-util-types" {
  interface TokenTypeMap {
    maths: "maths";
    mathsMark: "mathsMark";
    mathsValue: "mathsValue";
    mathsBlock: "mathsBlock";
  }
}

const DOLLAR = 36;
const OPEN = 40;
const CLOSE = 41;
const OPEN_SQUARE = 91;
const BACKSLASH = 92;
const CLOSE_SQUARE = 93;

/** Line endings have negative codes below that of a tab; the end of the text is null. */
const isLineEnd = (code: Code) => code !== null && code < -2;
const isSpace = (code: Code) => code !== null && (code < 0 || code === 32);
const isDigit = (code: Code) => code !== null && code >= 48 && code <= 57;
const isWord = (code: Code) => isDigit(code) || (code !== null && ((code >= 65 && code <= 90) || (code >= 97 && code <= 122)));

/** Reads `\` and the character after it as one step; `next` is given that character. */
function afterBackslash(effects: Effects, next: State): State {
  return (code) => {
    effects.consume(code);
    return next;
  };
}

const dollarText: Construct = { name: "maths", tokenize: tokenizeDollars, previous: (code) => !isWord(code) && code !== DOLLAR };

function tokenizeDollars(this: TokenizeContext, effects: Effects, ok: State, nok: State): State {
  let marks = 0;
  let closing = 0;
  let last: Code = null;

  const open: State = (code) => {
    if (code === DOLLAR) {
      marks += 1;
      effects.consume(code);
      return open;
    }
    if (marks > 2 || code === null || (marks === 1 && isSpace(code))) {
      return nok(code);
    }
    effects.exit("mathsMark");
    return content(code);
  };

  const content: State = (code) => {
    if (code === null) {
      return nok(code);
    }
    if (code === DOLLAR) {
      if (last === null || (marks === 1 && isSpace(last))) {
        return nok(code);
      }
      effects.enter("mathsMark");
      return close(code);
    }
    last = code;
    if (isLineEnd(code)) {
      effects.enter("lineEnding");
      effects.consume(code);
      effects.exit("lineEnding");
      return content;
    }
    effects.enter("mathsValue");
    return value(code);
  };

  const value: State = (code) => {
    if (code === null || code === DOLLAR || isLineEnd(code)) {
      effects.exit("mathsValue");
      return content(code);
    }
    last = code;
    effects.consume(code);
    return code === BACKSLASH ? escaped : value;
  };

  const escaped: State = (code) => (code === null || isLineEnd(code) ? value(code) : (effects.consume(code), value));

  const close: State = (code) => {
    if (code === DOLLAR) {
      closing += 1;
      effects.consume(code);
      return close;
    }
    if (closing !== marks || (marks === 1 && isDigit(code))) {
      return nok(code);
    }
    effects.exit("mathsMark");
    effects.exit("maths");
    return ok(code);
  };

  return (code) => {
    effects.enter("maths");
    effects.enter("mathsMark");
    return open(code);
  };
}

const bracketText: Construct = { name: "maths", tokenize: tokenizeBrackets };

function tokenizeBrackets(this: TokenizeContext, effects: Effects, ok: State, nok: State): State {
  let opener: Code = null;
  let empty = true;

  const bracket: State = (code) => {
    if (code !== OPEN && code !== OPEN_SQUARE) {
      return nok(code);
    }
    opener = code;
    effects.consume(code);
    effects.exit("mathsMark");
    return content;
  };

  const content: State = (code) => {
    if (code === null) {
      return nok(code);
    }
    if (isLineEnd(code)) {
      effects.enter("lineEnding");
      effects.consume(code);
      effects.exit("lineEnding");
      return content;
    }
    effects.enter("mathsValue");
    return value(code);
  };

  const value: State = (code) => {
    if (code === null || isLineEnd(code)) {
      effects.exit("mathsValue");
      return content(code);
    }
    effects.consume(code);
    if (code === BACKSLASH) {
      return escaped;
    }
    empty = false;
    return value;
  };

  const escaped: State = (code) => {
    if (code === null || isLineEnd(code)) {
      return value(code);
    }
    if (code === opener) {
      return nok(code);
    }
    effects.consume(code);
    if (code === (opener === OPEN ? CLOSE : CLOSE_SQUARE)) {
      if (empty) {
        return nok;
      }
      effects.exit("mathsValue");
      effects.exit("maths");
      return ok;
    }
    // Commands are maths; other escapes may be those of Markdown.
    empty &&= !isWord(code);
    return value;
  };

  return (code) => {
    effects.enter("maths");
    effects.enter("mathsMark");
    return afterBackslash(effects, bracket)(code);
  };
}

/** The next line, unless it belongs to the block only by laziness. */
const nextLine: Construct = {
  partial: true,
  tokenize(this: TokenizeContext, effects, ok, nok) {
    const { parser } = this;
    return (code) => {
      if (code === null) {
        return nok(code);
      }
      effects.enter("lineEnding");
      effects.consume(code);
      effects.exit("lineEnding");
      return (following) => (parser.lazy[this.now().line] ? nok(following) : ok(following));
    };
  },
};

/** Maths that begins and ends with a line: its lines are not read as lists or headings, whatever they begin with. */
const block: Construct = { name: "mathsBlock", tokenize: tokenizeBlock, concrete: true };

function tokenizeBlock(this: TokenizeContext, effects: Effects, ok: State, nok: State): State {
  const interrupts = this.interrupt === true;
  let brackets = false;
  let empty = true;
  let lines = 0;
  let lineEmpty = true;

  const second: State = (code) => {
    if (code !== (brackets ? OPEN_SQUARE : DOLLAR)) {
      return nok(code);
    }
    effects.consume(code);
    effects.exit("mathsMark");
    return first;
  };

  const first: State = (code) => (code === DOLLAR && !brackets ? nok(code) : lineStart(code));

  const lineStart: State = (code) => {
    lineEmpty = true;
    if (code === null || isLineEnd(code)) {
      return lineEnd(code);
    }
    if (!brackets && code === DOLLAR) {
      return dollar(code);
    }
    effects.enter("mathsValue");
    return value(code);
  };

  const dollar: State = (code) => {
    effects.enter("mathsMark");
    effects.consume(code);
    return closing;
  };

  const value: State = (code) => {
    if (code === null || isLineEnd(code)) {
      effects.exit("mathsValue");
      return lineEnd(code);
    }
    if (!brackets && code === DOLLAR) {
      effects.exit("mathsValue");
      return dollar(code);
    }
    if (!isSpace(code)) {
      lineEmpty = false;
    }
    if (code === BACKSLASH) {
      effects.consume(code);
      return escaped;
    }
    empty &&= isSpace(code);
    effects.consume(code);
    return value;
  };

  const escaped: State = (code) => {
    if (brackets && code === OPEN_SQUARE) {
      return nok(code);
    }
    if (brackets && code === CLOSE_SQUARE) {
      effects.consume(code);
      effects.exit("mathsValue");
      return after;
    }
    empty = false;
    return code === null || isLineEnd(code) ? value(code) : (effects.consume(code), value);
  };

  const closing: State = (code) => {
    if (code !== DOLLAR) {
      return nok(code);
    }
    effects.consume(code);
    effects.exit("mathsMark");
    return after;
  };

  const after: State = (code) => {
    if (code === -2 || code === -1 || code === 32) {
      effects.enter("whitespace");
      effects.consume(code);
      effects.exit("whitespace");
      return after;
    }
    if (empty || !(code === null || isLineEnd(code))) {
      return nok(code);
    }
    effects.exit("mathsBlock");
    return ok(code);
  };

  const lineEnd: State = (code) => {
    // A blank line ends the paragraph that this must be then.
    if (code === null || (lines > 0 && lineEmpty)) {
      return nok(code);
    }
    lines += 1;
    if (interrupts) {
      return empty ? ok(code) : nok(code);
    }
    return effects.attempt(nextLine, lineStart, nok)(code);
  };

  return (code) => {
    brackets = code === BACKSLASH;
    effects.enter("mathsBlock");
    effects.enter("mathsMark");
    effects.consume(code);
    return second;
  };
}

export const mathsSyntax: Extension = {
  flow: { [DOLLAR]: block, [BACKSLASH]: block },
  text: { [DOLLAR]: dollarText, [BACKSLASH]: bracketText },
};

/** Puts the node in the place of its marks and text. */
function fill(context: CompileContext, token: Token, source: string): void {
  const node = context.stack[context.stack.length - 1] as unknown as MathsNode;
  const long = source.startsWith("$$") || source.startsWith("\\");
  node.source = source;
  node.value = source.slice(long ? 2 : 1, long ? -2 : -1).trim();
  node.display = source.startsWith("$$") || source.startsWith("\\[");
  context.exit(token);
}

function enter(this: CompileContext, token: Token): void {
  this.enter({ type: "maths", value: "", display: false, source: "" } as never, token);
}

export const mathsTree: TreeExtension = {
  enter: { maths: enter, mathsBlock: enterBlock },
  exit: {
    maths(token) {
      fill(this, token, this.sliceSerialize(token));
    },
    mathsMark: addText,
    mathsValue: addText,
    mathsBlock(token) {
      fill(this, token, this.resume());
    },
  },
};

function enterBlock(this: CompileContext, token: Token): void {
  enter.call(this, token);
  // Collects the text without the marks of quotes and lists before each line.
  this.buffer();
}

function addText(this: CompileContext, token: Token): void {
  const top = this.stack[this.stack.length - 1];
  if (top?.type === "fragment") {
    this.config.enter.data?.call(this, token);
    this.config.exit.data?.call(this, token);
  }
}
