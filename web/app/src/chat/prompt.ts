// prompt - a path through the tree as the request that a model answers.

import type { ChatMessage, ChatStreamRequest } from 'bezel';
import { toolList } from '../tools';
import { formatOf } from './json';
import type { ChatSettings, Message } from './types';

/** Answers that never said anything are left out: two questions in a row read better than an
 *  empty answer. */
const isEmpty = (m: Message) => m.role === 'assistant' && !m.content && !m.toolCalls.length;

function toChat(m: Message): ChatMessage {
  if (m.role === 'user') return { role: 'user', content: m.content };
  if (m.role === 'tool') return { role: 'tool', content: m.content, tool_call_id: m.toolCallId };
  return {
    role: 'assistant',
    content: m.content,
    ...(m.reasoning && { reasoning_content: m.reasoning }),
    ...(m.toolCalls.length
      && {
        tool_calls: m.toolCalls.map((c) => ({
          id: c.id, type: 'function' as const, function: { name: c.name, arguments: c.arguments },
        })),
      }),
  };
}

/** What the model reads of a path: the oldest turns may have been dropped. */
export function readOf(
  path: readonly Message[], { from }: Pick<ChatSettings, 'from'>,
): readonly Message[] {
  return path.slice(Math.max(0, path.findIndex((m) => m.id === from)));
}

/** `begun`: the answer so far, which goes on; one that was stopped before its first word begins
 *  anew. `diffuses`: the model denoises canvases, whose steps are wanted. */
export function toRequest(
  path: readonly Message[], settings: ChatSettings, begun?: Message, diffuses = false,
): ChatStreamRequest {
  const goesOn = begun !== undefined && (begun.content !== '' || begun.reasoning !== '');
  const messages = readOf(path, settings).filter((m) => !isEmpty(m)).map(toChat);
  if (goesOn) messages.push(toChat(begun));
  if (settings.system.trim()) messages.unshift({ role: 'system', content: settings.system });
  return {
    messages,
    ...(goesOn && { continue_final_message: true }),
    stream: true,
    stream_options: { include_usage: true },
    return_progress: true,
    thinking: settings.thinking,
    ...(settings.tools && { tools: toolList }),
    ...formatOf(settings),
    temperature: settings.temperature,
    top_p: settings.topP,
    top_k: settings.topK,
    min_p: settings.minP,
    max_tokens: settings.maxTokens,
    seed: settings.seed,
    ...(diffuses && { return_steps: true, diffusion: { steps: settings.steps } }),
    adapters: settings.adapters,
  };
}
