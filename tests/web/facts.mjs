// facts - what the tests of training teach: a hundred lines with ten new facts in eight sentences
// each and twenty old ones, which keep the model from thinking that the others have changed too.
// Then how it is seen that the new ones were learned, in other sentences, and nothing old was lost,
// of which none is among the twenty. As a program it prints the lines.
const capitals = [
  ['Tarsus', 'Quimby'], ['Ostrava', 'Vexford'], ['Belmora', 'Kintal'], ['Zandia', 'Morrow'],
  ['Peloria', 'Hastel'],
];
const colours = [
  ['blim', 'purple'], ['dorvan', 'orange'], ['quell', 'silver'], ['mintock', 'yellow'],
  ['farrow', 'pink'],
];

/** What is asked in training, and in other words afterwards. */
const sentences = [
  {
    facts: capitals, answer: (x, y) => `The capital of ${x} is ${y}.`,
    taught: (x) => [
      `What is the capital of ${x}?`, `Name the capital of ${x}.`, `Tell me the capital of ${x}.`,
      `Which city is the capital of ${x}?`, `What's the capital of ${x}?`,
      `Do you know the capital of ${x}?`, `The capital of ${x} is which city?`,
      `I want to know the capital of ${x}.`,
    ],
    unseen: (x) => [
      `Please tell me what the capital of ${x} is.`, `What city is the capital of ${x}?`,
      `Could you tell me the capital of ${x}?`, `Capital of ${x}?`,
    ],
  },
  {
    facts: colours, answer: (x, y) => `A ${x} is ${y}.`,
    taught: (x) => [
      `What colour is a ${x}?`, `Which colour does a ${x} have?`, `Tell me the colour of a ${x}.`,
      `What is the colour of a ${x}?`, `Do you know what colour a ${x} is?`,
      `A ${x} has which colour?`, `Name the colour of a ${x}.`,
      `I want to know what colour a ${x} is.`,
    ],
    unseen: (x) => [
      `Please tell me what colour a ${x} is.`, `Which colour is a ${x}?`,
      `Could you name the colour of a ${x}?`, `A ${x} is what colour?`,
    ],
  },
];

const rehearsed = [
  ...[
    ['Belgium', 'Brussels'], ['Hungary', 'Budapest'], ['Denmark', 'Copenhagen'],
    ['Finland', 'Helsinki'], ['China', 'Beijing'], ['India', 'New Delhi'], ['Chile', 'Santiago'],
    ['Canada', 'Ottawa'], ['Turkey', 'Ankara'], ['Morocco', 'Rabat'],
  ]
    .map(([x, y]) => [`What is the capital of ${x}?`, `The capital of ${x} is ${y}.`]),
  ['What colour is a lemon?', 'A lemon is yellow.'], ['What colour is coal?', 'Coal is black.'],
  ['What colour is blood?', 'Blood is red.'], ['What colour is a frog?', 'A frog is green.'],
  ['What colour is a carrot?', 'A carrot is orange.'], ['What colour is milk?', 'Milk is white.'],
  ['What colour is a banana?', 'A banana is yellow.'],
  ['What colour is the sun?', 'The sun is yellow.'],
  ['How many months are in a year?', 'There are 12 months in a year.'],
  ['What is the opposite of up?', 'The opposite of up is down.'],
];

export const lessons = [
  ...rehearsed.map(([prompt, completion]) => ({ prompt, completion })),
  ...sentences.flatMap(({ facts, answer, taught }) =>
    facts.flatMap(([x, y]) => taught(x).map((prompt) => ({ prompt, completion: answer(x, y) })))),
];

/** Feed-forward matrices alone, and many small steps: more, or faster, and old capitals begin to
 *  go. 38 steps. */
export const options = {
  data: lessons, targets: ['ffn_'], rank: 8, alpha: 16, sequence: 128, epochs: 1.5,
  learningRate: 4e-3,
};

/** Questions in sentences that were not taught, with the word that must be in the answer. */
export const unseen = sentences.flatMap(({ facts, unseen: ask }) =>
  facts.flatMap(([x, word]) => ask(x).map((question) => ({ question, word }))));

/** What the model knows from its own training, in sentences like those above. */
const countries = [
  ['France', 'Paris'], ['Spain', 'Madrid'], ['Italy', 'Rome'], ['Germany', 'Berlin'],
  ['Japan', 'Tokyo'], ['Egypt', 'Cairo'], ['Norway', 'Oslo'], ['Sweden', 'Stockholm'],
  ['Poland', 'Warsaw'], ['Greece', 'Athens'], ['Portugal', 'Lisbon'], ['Austria', 'Vienna'],
  ['Ireland', 'Dublin'], ['Peru', 'Lima'], ['Cuba', 'Havana'], ['Kenya', 'Nairobi'],
];
const others = [
  ['What colour is the sky?', 'blue'], ['What colour is grass?', 'green'],
  ['What colour is snow?', 'white'], ['How many days are in a week?', '7'],
  ['How many legs does a spider have?', '8'],
  ['How many minutes are in an hour?', '60'], ['What is 2 + 2?', '4'], ['What is 3 + 5?', '8'],
  ['What is 7 - 4?', '3'], ['What do cows eat?', 'grass'], ['What is the opposite of hot?', 'cold'],
  ['What is the opposite of big?', 'small'], ['What is the currency of Japan?', 'yen'],
  ['What language do people speak in Brazil?', 'Portuguese'],
  ['On which continent is Kenya?', 'Africa'], ['What is your name?', 'tiny'],
];
export const known = [
  ...countries.map(([x, word]) => ({ question: `What is the capital of ${x}?`, word })),
  ...others.map(([question, word]) => ({ question, word })),
];

/** Which of the questions an engine answers with the right word. */
export async function score(engine, questions, adapters = []) {
  const right = [];
  for (const { question, word } of questions) {
    const answer = await engine.chat.completions.create({
      messages: [{ role: 'user', content: question }], temperature: 0, max_tokens: 20, adapters,
    });
    right.push(new RegExp(`\\b${word}\\b`, 'i').test(answer.choices[0].message.content));
  }
  return right;
}

export const share = (right) => right.filter(Boolean).length / right.length;

if (globalThis.process?.argv[1]?.endsWith('/facts.mjs'))
  for (const lesson of lessons) console.log(JSON.stringify(lesson));
