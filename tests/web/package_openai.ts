// What programs written for OpenAI's client hold in their hands is taken as it is, and answers are
// what they expect.
import type OpenAI from 'openai';
import {
  type ChatCompletion, type ChatCompletionChunk, type ChatRequest, type CompletionRequest,
  type Engine,
} from 'bezel';

export const chat = (request: OpenAI.ChatCompletionCreateParams): ChatRequest => request;
export const raw = (request: OpenAI.CompletionCreateParams): CompletionRequest => request;
export const messages = (list: OpenAI.ChatCompletionMessageParam[]): ChatRequest['messages'] =>
  list;
export const answer = (a: ChatCompletion): OpenAI.ChatCompletion => a;
export const chunk = (a: ChatCompletionChunk): OpenAI.ChatCompletionChunk => a;

export async function ask(
  engine: Engine, request: OpenAI.ChatCompletionCreateParamsNonStreaming,
): Promise<OpenAI.ChatCompletion> {
  return engine.chat.completions.create(request);
}
export async function stream(
  engine: Engine, request: OpenAI.ChatCompletionCreateParamsStreaming,
): Promise<AsyncIterable<OpenAI.ChatCompletionChunk>> {
  return engine.chat.completions.create(request);
}
