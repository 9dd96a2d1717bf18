// prompt - a path through the tree as the request that a model answers.

import type { ChatMessage, ChatStreamRequest } from 'bezel';
import { toolList } from '../tools';
import type { ChatSettings, Message } from './types';

/** Answers that never said anything are left out: two questions in a row read better than an empty answer. */
const isEmpty = (m: Message) => m.role === 'assistant' && !m.content && !m.toolCalls.length;

function toChat(m: Message): ChatMessage {
  if (m.role === 'user') return { role: 'user', content: m.content };
  if (m.role === 'tool') return { role: 'tool', content: m.content, tool_call_id: m.toolCallId };
  return {
    role: 'assistant',
    content: m.content,
    ...(m.reasoning && { reasoning_content: m.reasoning }),
    ...(m.toolCalls.length && { tool_calls: m.toolCalls.map((c) => ({ id: c.id, type: 'function' as const, function: { name: c.name, arguments: c.arguments } })) }),
  };
}

export function toRequest(path: readonly Message[], settings: ChatSettings): ChatStreamRequest {
  const messages = path.filter((m) => !isEmpty(m)).map(toChat);
  if (settings.system.trim()) messages.unshift({ role: 'system', content: settings.system });
  return {
    messages,
    stream: true,
    stream_options: { include_usage: true },
    return_progress: true,
    thinking: settings.thinking,
    ...(settings.tools && { tools: toolList }),
    temperature: settings.temperature,
    top_p: settings.topP,
    top_k: settings.topK,
    min_p: settings.minP,
    max_tokens: settings.maxTokens,
    seed: settings.seed,
    adapters: settings.adapters,
  };
}
