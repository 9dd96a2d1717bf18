// id - a name that nothing else has. Not by crypto.randomUUID: over plain HTTP, which is how
// another machine may call `bezel serve`, browsers do not have it.

const hex = (byte: number): string => byte.toString(16).padStart(2, '0');

export const newId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map(hex).join('');
