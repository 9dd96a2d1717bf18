// schemas - examples to begin with.

const text = { type: 'string' };
const closed = (properties: Record<string, object>): object => ({
  type: 'object', properties, required: Object.keys(properties), additionalProperties: false,
});

export const examples: readonly { name: string; schema: object }[] = [
  {
    name: 'Person',
    schema: closed({ name: text, age: { type: 'integer', minimum: 0, maximum: 130 }, city: text }),
  },
  {
    name: 'List',
    schema: closed({
      title: text,
      items: {
        type: 'array', minItems: 1, maxItems: 10,
        items: closed({ name: text, count: { type: 'integer', minimum: 1 } }),
      },
    }),
  },
  {
    name: 'Review',
    schema: closed({
      mood: { enum: ['good', 'mixed', 'bad'] },
      stars: { type: 'integer', minimum: 1, maximum: 5 },
      reasons: { type: 'array', items: text, maxItems: 3 },
    }),
  },
];
