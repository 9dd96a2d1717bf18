// calculator - arithmetic as people write it, by a small parser of its own. Nothing is ever
// evaluated as code.
//
//   sum     = product (('+' | '-') product)*
//   product = unary (('*' | '/' | '%' | implied) unary)*
//   unary   = ('-' | '+') unary | power                 so that -2^2 is -4
//   power   = atom ('!' | '%')* ('^' unary)?         right to left
//   atom    = number | name | name '(' sum (',' sum)* ')' | '(' sum ')'

const constants: Record<string, number> = { pi: Math.PI, e: Math.E, tau: 2 * Math.PI };
const functions: Record<string, (...x: number[]) => number> = {
  sqrt: Math.sqrt, cbrt: Math.cbrt, abs: Math.abs, exp: Math.exp, ln: Math.log, log: Math.log10,
  log2: Math.log2,
  sin: Math.sin, cos: Math.cos, tan: Math.tan, asin: Math.asin, acos: Math.acos, atan: Math.atan,
  floor: Math.floor, ceil: Math.ceil, round: Math.round, min: Math.min, max: Math.max,
  pow: Math.pow,
};

class Parser {
  private at = 0;
  private depth = 0;
  private readonly tokens: string[];

  constructor(text: string) {
    const plain = text.replace(/[×·]/g, '*')
      .replace(/÷/g, '/')
      .replace(/[−–]/g, '-')
      .replace(/\*\*/g, '^')
      .replace(/π/g, 'pi')
      .replace(/√/g, 'sqrt ')
      .replace(/\bof\b/gi, '*');
    this.tokens = plain.match(/\d+(?:_\d+)*(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+|[a-z]+\d*|\S/gi) ?? [];
  }

  private take(token: string): boolean {
    if (this.tokens[this.at] !== token) return false;
    this.at++;
    return true;
  }

  private need(token: string): void {
    if (!this.take(token)) throw new Error(`expected "${token}" ${this.where()}`);
  }

  private where(): string {
    const next = this.tokens[this.at];
    return next === undefined ? 'at the end' : `before "${next}"`;
  }

  whole(): number {
    if (this.tokens.length > 1000) throw new Error('the expression is too long');
    const value = this.sum();
    if (this.at < this.tokens.length)
      throw new Error(`did not understand "${this.tokens[this.at]}"`);
    return value;
  }

  private sum(): number {
    if (++this.depth > 100) throw new Error('too many brackets');
    let value = this.product();
    for (;;) {
      if (this.take('+')) value += this.product();
      else if (this.take('-')) value -= this.product();
      else break;
    }
    this.depth--;
    return value;
  }

  private product(): number {
    let value = this.unary();
    for (;;) {
      if (this.take('*')) value *= this.unary();
      else if (this.take('/')) value /= this.unary();
      else if (this.take('%')) value %= this.unary();
      else if (/^[a-z(]/i.test(this.tokens[this.at] ?? '')) value *= this.unary(); // 2 pi, 3(4 + 1)
      else return value;
    }
  }

  private unary(): number {
    if (this.take('-')) return -this.unary();
    if (this.take('+')) return this.unary();
    return this.power();
  }

  private power(): number {
    const base = this.postfix();
    return this.take('^') ? base ** this.unary() : base;
  }

  private postfix(): number {
    let value = this.atom();
    for (;;) {
      const after = this.tokens[this.at + 1] ?? '';
      if (this.take('!')) value = factorial(value);
      // 5 % 3 is a remainder, 5% a hundredth
      else if (this.tokens[this.at] === '%' && !/^[\w.(]/.test(after)) {
        this.at++;
        value /= 100;
      } else return value;
    }
  }

  private atom(): number {
    const token = this.tokens[this.at];
    if (token === undefined) throw new Error('the expression ends too early');
    if (this.take('(')) {
      const value = this.sum();
      this.need(')');
      return value;
    }
    this.at++;
    if (/^[\d.]/.test(token)) return Number(token.replaceAll('_', ''));
    const name = token.toLowerCase();
    if (Object.hasOwn(constants, name)) return constants[name] ?? NaN;
    const fn = Object.hasOwn(functions, name) ? functions[name] : undefined;
    if (!fn) throw new Error(`did not understand "${token}"`);
    if (!this.take('(')) return fn(this.unary()); // √9
    const args = [this.sum()];
    while (this.take(',')) args.push(this.sum());
    this.need(')');
    if (args.length > 1 && fn.length === 1) throw new Error(`${name} takes one value`);
    return fn(...args);
  }
}

function factorial(n: number): number {
  if (!Number.isInteger(n) || n < 0 || n > 170)
    throw new Error('a factorial needs a whole number from 0 to 170');
  let value = 1;
  for (let i = 2; i <= n; i++) value *= i;
  return value;
}

/** "0.1 + 0.2" is 0.3 to a person: fifteen digits are what a double surely holds. */
export function calculate(expression: string): number {
  const value = new Parser(expression).whole();
  if (!Number.isFinite(value)) throw new Error('the result is not a number');
  return Number(value.toPrecision(15));
}
