// types - a conversation as the page keeps it: a tree of messages and how to sample its answers.

import type { Frame } from './canvas';

export type Role = 'user' | 'assistant' | 'tool';

/** `streaming` in the history means that nobody finished it: the page went away in mid-answer. */
export type MessageState = 'done' | 'streaming' | 'stopped' | 'error';

export interface ToolCall {
  id: string;
  name: string;
  /** JSON, as the model wrote it. */
  arguments: string;
}

/** How an answer went; seconds and tokens. */
export interface Stats {
  promptTokens: number;
  cachedTokens: number;
  tokens: number;
  firstToken: number;
  tokensPerSecond: number;
  /** Of a diffusion model; else 0. */
  steps: number;
  model: string;
  backend: 'gpu' | 'cpu';
}

export interface Message {
  id: string;
  conversation: string;
  parent: string | null;
  role: Role;
  content: string;
  reasoning: string;
  toolCalls: ToolCall[];
  /** Of a tool's result: which call it answers, and the tool's name. */
  toolCallId: string;
  toolName: string;
  state: MessageState;
  /** One sentence for people, where `state` is `error`. */
  note: string;
  stats: Stats | null;
  /** How a diffusion model's canvases were denoised, where that is small enough to be kept. */
  frames: Frame[] | null;
  created: number;
}

export interface ChatSettings {
  system: string;
  thinking: boolean;
  tools: boolean;
  temperature: number | null;
  topP: number | null;
  topK: number | null;
  minP: number | null;
  maxTokens: number | null;
  seed: number | null;
  /** Of a diffusion model: of a canvas at most. */
  steps: number | null;
  /** Whether answers are JSON: any object, or what the schema says. */
  json: 'off' | 'object' | 'schema';
  /** As it was typed. */
  schema: string;
  /** The first message that the model still reads; null: it reads all. */
  from: string | null;
  /** What the first question asks a summary of: messages of another conversation, from the first
   *  to the last. */
  summaryOf: { conversation: string; from: string; to: string } | null;
  /** Those that are on, and how strong. */
  adapters: { name: string; scale: number }[];
}

export interface Conversation {
  id: string;
  title: string;
  created: number;
  updated: number;
  /** The message at whose end the person is. */
  leaf: string | null;
  settings: ChatSettings;
  /** Which model the saved state of this conversation belongs to; empty: none is saved. */
  savedFor: string;
}

export interface Thread {
  conversation: Conversation;
  messages: Message[];
}

/** What export writes and import reads. */
export interface Archive {
  format: 'bezel-conversations';
  version: 1;
  threads: Thread[];
}

/** null leaves a value to the model's own preference. */
export const defaultSettings: ChatSettings = {
  system: '',
  thinking: false,
  tools: false,
  temperature: null,
  topP: null,
  topK: null,
  minP: null,
  maxTokens: null,
  seed: null,
  steps: null,
  json: 'off',
  schema: '',
  from: null,
  summaryOf: null,
  adapters: [],
};
