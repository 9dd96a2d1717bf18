// tools - what a model may call here. All of it is safe: it reads a clock or does sums, and touches
// nothing else.

import { calculate } from './calculator';
import { dateIn, timeIn } from './clock';

interface BuiltIn {
  description: string;
  parameters: Record<string, unknown>;
  run(args: Record<string, unknown>): string;
}

const text = (value: unknown): string =>
  (typeof value === 'string' || typeof value === 'number' ? String(value) : '');

const place = {
  type: 'object',
  properties: { city: { type: 'string', description: 'A city or a time zone; without it, here' } },
};

const builtIns: Record<string, BuiltIn> = {
  calculator: {
    description: 'Calculate an arithmetic expression exactly.',
    parameters: {
      type: 'object',
      properties: {
        expression: { type: 'string', description: 'The expression, e.g. (12 + 3) * 4' },
      },
      required: ['expression'],
    },
    run: (args) => String(calculate(text(args['expression']))),
  },
  get_time: {
    description: 'Current time in a city', parameters: place,
    run: (args) => timeIn(text(args['city'])),
  },
  get_date: {
    description: 'Current date in a city', parameters: place,
    run: (args) => dateIn(text(args['city'])),
  },
};

export const toolList = Object.entries(builtIns).map(([name, { description, parameters }]) => ({
  type: 'function' as const,
  function: { name, description, parameters },
}));

/** The result as plain text; a failure is an answer too, so that the model can say so or try
 *  again. */
export function runTool(name: string, args: string): string {
  try {
    const tool = Object.hasOwn(builtIns, name) ? builtIns[name] : undefined;
    if (!tool) throw new Error(`there is no tool called ${name}`);
    const parsed: unknown = JSON.parse(args || '{}');
    if (typeof parsed !== 'object' || parsed === null)
      throw new Error('the arguments are not an object');
    return tool.run(parsed as Record<string, unknown>);
  } catch (e) {
    return `Error: ${e instanceof Error ? e.message : String(e)}`;
  }
}
