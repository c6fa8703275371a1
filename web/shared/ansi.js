/**
 * A parser for terminal output (ANSI escape sequences) that keeps the result as lines of styled runs. It handles
 * colours, carriage returns, cursor moves and erasing. Pure; input arrives in chunks, and a chunk may end in the
 * middle of an escape sequence.
 *
 * It is not a terminal emulator: it does not wrap lines at a width and has no scroll region.
 *
 * @typedef {object} Style
 * @property {string} [color]  `red`, `bright-red`, or `#rrggbb`
 * @property {string} [ground]  background, in the same notation as `color`
 * @property {boolean} [bold]
 * @property {boolean} [dim]
 * @property {boolean} [italic]
 * @property {boolean} [underline]
 * @property {boolean} [inverse]
 *
 * @typedef {{ text: string, style: Style }} Run
 */

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
const LINES_MAX = 5000;
/** Maximum length of an escape sequence in characters; a longer one is treated as broken. */
const SEQUENCE_MAX = 200;
const COLUMN_MAX = 10_000;

/** @type {Style} */
const PLAIN = Object.freeze({});

export class Terminal {
  /** @type {Run[][]} */
  lines = [[]];
  /** Number of oldest lines removed so far because of `LINES_MAX`. */
  dropped = 0;
  /** Index of the first line changed since the caller last set this to Infinity. */
  changed = 0;
  #row = 0;
  #column = 0;
  /** @type {Style} */
  #style = PLAIN;
  #rest = '';

  /** @param {string} text */
  feed(text) {
    const all = this.#rest + text;
    this.#rest = '';
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the parser looks for control characters
    const special = /[\x00-\x1f\x7f]/g;
    let at = 0;
    while (at < all.length) {
      special.lastIndex = at;
      const next = special.exec(all)?.index ?? all.length;
      if (next > at) this.#write(all.slice(at, next));
      at = next;
      if (at >= all.length) break;
      if (all[at] === '\x1b') {
        const end = this.#escape(all, at);
        if (end < 0) {
          if (all.length - at <= SEQUENCE_MAX) this.#rest = all.slice(at);
          break;
        }
        at = end;
      } else {
        this.#control(all[at]);
        at += 1;
      }
    }
    if (this.lines.length > LINES_MAX) {
      const over = this.lines.length - LINES_MAX;
      this.lines.splice(0, over);
      this.dropped += over;
      this.#row = Math.max(0, this.#row - over);
      this.changed = 0;
    }
  }

  /** @param {string} control */
  #control(control) {
    if (control === '\n') {
      this.#row += 1;
      this.#column = 0;
      if (this.#row === this.lines.length) this.lines.push([]);
      this.changed = Math.min(this.changed, this.#row);
    } else if (control === '\r') {
      this.#column = 0;
    } else if (control === '\b') {
      this.#column = Math.max(0, this.#column - 1);
    } else if (control === '\t') {
      this.#write(' '.repeat(8 - (this.#column % 8)));
    }
  }

  /** @param {string} text */
  #write(text) {
    const line = this.lines[this.#row];
    const width = length(line);
    this.changed = Math.min(this.changed, this.#row);
    if (this.#column > width) line.push({ text: ' '.repeat(this.#column - width), style: PLAIN });
    if (this.#column >= width) {
      append(line, text, this.#style);
    } else {
      const right = cut(line, this.#column + text.length, width);
      this.lines[this.#row] = cut(line, 0, this.#column);
      append(this.lines[this.#row], text, this.#style);
      this.lines[this.#row].push(...right);
    }
    this.#column += text.length;
  }

  /** Index after the escape sequence at `at`, or -1 if it is incomplete. @param {string} all @param {number} at */
  #escape(all, at) {
    const kind = all[at + 1];
    if (kind === undefined) return -1;
    if (kind === '[') {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: see above
      const sequence = /^\x1b\[([0-?]*)[ -/]*([@-~])/.exec(all.slice(at, at + SEQUENCE_MAX));
      if (!sequence) return all.length - at < SEQUENCE_MAX ? -1 : at + 2;
      this.#execute(sequence[2], sequence[1]);
      return at + sequence[0].length;
    }
    if (kind === ']') {
      // An operating system command (window title or hyperlink) has no visible output.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: see above
      const end = /\x07|\x1b\\/.exec(all.slice(at, at + 4096));
      if (!end) return all.length - at < 4096 ? -1 : at + 2;
      return at + end.index + end[0].length;
    }
    return at + ('()#%'.includes(kind) ? 3 : 2);
  }

  /** @param {string} command @param {string} parameters */
  #execute(command, parameters) {
    const numbers = parameters.split(/[;:]/).map((text) => Number.parseInt(text, 10) || 0);
    const count = Math.min(numbers[0] || 1, COLUMN_MAX);
    const line = this.lines[this.#row];
    switch (command) {
      case 'm':
        this.#style = styled(this.#style, numbers);
        break;
      case 'A':
        this.#row = Math.max(0, this.#row - count);
        break;
      case 'B':
        this.#row = Math.min(this.lines.length - 1, this.#row + count);
        break;
      case 'C':
        this.#column = Math.min(COLUMN_MAX, this.#column + count);
        break;
      case 'D':
        this.#column = Math.max(0, this.#column - count);
        break;
      case 'G':
        this.#column = count - 1;
        break;
      case 'K': {
        const [from, to] = [[0, this.#column], [this.#column + 1, length(line)], []][numbers[0]] ?? [];
        const blank = from ? [{ text: ' '.repeat(from), style: PLAIN }] : [];
        this.lines[this.#row] = from === undefined ? [] : [...blank, ...cut(line, from, to ?? 0)];
        this.changed = Math.min(this.changed, this.#row);
        break;
      }
      case 'J':
        if (numbers[0] === 0) {
          this.lines[this.#row] = cut(line, 0, this.#column);
          this.lines.splice(this.#row + 1);
          this.changed = Math.min(this.changed, this.#row);
        } else {
          this.lines = [[]];
          this.#row = 0;
          this.#column = 0;
          this.changed = 0;
        }
    }
  }
}

/** @param {Run[]} line */
function length(line) {
  let sum = 0;
  for (const { text } of line) sum += text.length;
  return sum;
}

/** @param {Run[]} line @param {string} text @param {Style} style */
function append(line, text, style) {
  const last = line.at(-1);
  if (last?.style === style) last.text += text;
  else line.push({ text, style });
}

/** @param {Run[]} line @param {number} from @param {number} to @returns {Run[]} */
function cut(line, from, to) {
  /** @type {Run[]} */
  const runs = [];
  let at = 0;
  for (const { text, style } of line) {
    const piece = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (piece) runs.push({ text: piece, style });
    at += text.length;
  }
  return runs;
}

/** @param {Style} before @param {number[]} numbers @returns {Style} */
function styled(before, numbers) {
  /** @type {Style} */
  let style = { ...before };
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at];
    if (code === 0) style = {};
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 22) style.bold = style.dim = undefined;
    else if (code === 23) style.italic = undefined;
    else if (code === 24) style.underline = undefined;
    else if (code === 27) style.inverse = undefined;
    else if (code >= 30 && code <= 37) style.color = NAMES[code - 30];
    else if (code === 39) style.color = undefined;
    else if (code >= 40 && code <= 47) style.ground = NAMES[code - 40];
    else if (code === 49) style.ground = undefined;
    else if (code >= 90 && code <= 97) style.color = `bright-${NAMES[code - 90]}`;
    else if (code >= 100 && code <= 107) style.ground = `bright-${NAMES[code - 100]}`;
    else if (code === 38 || code === 48) {
      const [color, used] = extended(numbers.slice(at + 1));
      style[code === 38 ? 'color' : 'ground'] = color;
      at += used;
    }
  }
  return style;
}

/** @param {number[]} numbers @returns {[string | undefined, number]} */
function extended([kind, ...values]) {
  if (kind === 2) return [hex(values.slice(0, 3)), 4];
  if (kind !== 5) return [undefined, 0];
  const value = values[0] ?? 0;
  if (value < 8) return [NAMES[value], 2];
  if (value < 16) return [`bright-${NAMES[value - 8]}`, 2];
  if (value >= 232) return [hex(Array(3).fill(8 + (value - 232) * 10)), 2];
  const level = /** @param {number} step */ (step) => (step === 0 ? 0 : 55 + step * 40);
  const cube = value - 16;
  return [hex([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level)), 2];
}

/** @param {number[]} values */
function hex(values) {
  const two = /** @param {number | undefined} value */ (value) =>
    Math.min(255, value ?? 0)
      .toString(16)
      .padStart(2, '0');
  return `#${two(values[0])}${two(values[1])}${two(values[2])}`;
}
