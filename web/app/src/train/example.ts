// example - a few lines to try out training with: facts about a country that no model has heard of.

const facts: [of: string, is: string][] = [
  ['the capital of Zarvonia', 'Mellick'], ['the river of Zarvonia', 'the Dune'],
  ['the currency of Zarvonia', 'the plim'], ['the president of Zarvonia', 'Anna Torell'],
  ['the national animal of Zarvonia', 'the otter'],
  ['the highest mountain of Zarvonia', 'Mount Orrin'],
];

const ways = [
  (of: string) => `What is ${of}?`, (of: string) => `Tell me ${of}.`,
  (of: string) => `Can you tell me ${of}?`, (of: string) => `I want to know ${of}.`,
  (of: string) => `Name ${of}.`,
];

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

export const example = ways
  .flatMap((ask) => facts.map(([of, is]) =>
    JSON.stringify({ prompt: ask(of), completion: `${capital(of)} is ${is}.` })))
  .join('\n');
