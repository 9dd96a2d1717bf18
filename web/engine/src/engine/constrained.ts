// constrained - what an answer keeps to, compiled while nothing has been promised yet: what cannot
// be kept is an error of the request.

import type { Order } from '../api/completions_request.js';
import { BezelError } from '../api/errors.js';
import type { CallableTool, Constraint } from './cpu_engine.js';
import type { Model } from './model.js';

/** Tools that say nothing of being strict are where they can be. */
function decided(model: Model, constraint: Constraint): Constraint {
  const { tools } = constraint;
  if (!tools) return constraint;
  const strict = (tool: CallableTool): CallableTool => ({ ...tool, strict: true });
  const canKeep = (tool: CallableTool): boolean =>
    model.checkConstraint({ tools: [strict(tool)], call: 'required' }) === undefined;
  return {
    ...constraint,
    tools: tools.map((tool) => ({ ...tool, strict: tool.strict ?? canKeep(tool) })),
  };
}

/** The order with what its answer keeps to among the options of its conversation. */
export function constrained<O extends Order>(model: Model, order: O, inThought = false): O {
  if (!order.constraint) return order;
  const { constraint: wish, param } = order.constraint;
  const constraint = decided(model, { ...wish, ...(inThought && { in_thought: true }) });
  const why = model.checkConstraint(constraint);
  if (why !== undefined)
    throw new BezelError(`"${param}": ${why}`, 'unsupported', undefined, param);
  return { ...order, options: { ...order.options, constraint } };
}
