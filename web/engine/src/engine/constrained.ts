// constrained - what an answer keeps to, compiled while nothing has been promised yet: what cannot
// be kept is an error of the request.

import type { Order } from '../api/completions_request.js';
import { BezelError } from '../api/errors.js';
import type { CallableTool, Constraint } from './cpu_engine.js';
import type { Model } from './model.js';

/** Tools that say nothing of being strict are where they can be; `keeps` asks that of each. */
const decided = (
  tools: readonly CallableTool[], keeps: (tool: CallableTool) => boolean,
): readonly CallableTool[] =>
  tools.map((tool) => ({ ...tool, strict: tool.strict ?? keeps({ ...tool, strict: true }) }));

/** The order with what its answer keeps to among the options of its conversation. */
export function constrained<O extends Order>(model: Model, order: O, inThought = false): O {
  if (!order.constraint) return order;
  const { constraint: { tools, ...wish }, param } = order.constraint;
  const withTools = (list: readonly CallableTool[] | undefined): Constraint => ({
    ...wish, ...(inThought && { in_thought: true }), ...(list && { tools: list }),
  });
  let constraint = withTools(tools && decided(tools, () => true));
  let why = model.checkConstraint(constraint);
  if (why !== undefined && tools) {
    const keeps = (tool: CallableTool): boolean =>
      model.checkConstraint({ tools: [tool], call: 'required' }) === undefined;
    constraint = withTools(decided(tools, keeps));
    why = model.checkConstraint(constraint);
  }
  if (why !== undefined)
    throw new BezelError(`"${param}": ${why}`, 'unsupported', undefined, param);
  return { ...order, options: { ...order.options, constraint } };
}
