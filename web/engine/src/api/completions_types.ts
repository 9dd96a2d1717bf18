// completions_types - requests and answers in OpenAI's shapes, as far as this engine speaks them.
//
// Field names are the wire's (snake_case), so that JSON goes through unchanged. What is not
// OpenAI's says so. A request of OpenAI's own types is one of these too: what this engine cannot do
// of it is an error of kind 'unsupported' when it is asked for.

import type { DiffusionSettings, DiffusionStep, DiffusionUsage } from './diffusion_types.js';

export type FinishReason = 'stop' | 'length' | 'tool_calls';

export interface TextPart {
  type: 'text';
  text: string;
}
export interface ImagePart {
  type: 'image_url';
  image_url: { url: string; detail?: string };
}
export interface AudioPart {
  type: 'input_audio';
  input_audio: { data: string; format: string };
}
export interface FilePart {
  type: 'file';
  file: { file_data?: string; file_id?: string; filename?: string };
}
export interface RefusalPart {
  type: 'refusal';
  refusal: string;
}
/** Today only text is read; others are an error of kind 'unsupported'. */
export type ContentPart = TextPart | ImagePart | AudioPart | FilePart;

export interface ToolCall {
  id: string;
  type: 'function';
  /** `arguments` is a JSON object as text. */
  function: { name: string; arguments: string };
}

/** Not supported. */
export interface CustomToolCall {
  id: string;
  type: 'custom';
  custom: { name: string; input: string };
}

export interface SystemMessage {
  role: 'system' | 'developer';
  content: string | TextPart[];
  name?: string;
}
export interface UserMessage {
  role: 'user';
  content: string | ContentPart[];
  name?: string;
}
export interface AssistantMessage {
  role: 'assistant';
  content?: string | (TextPart | RefusalPart)[] | null;
  tool_calls?: (ToolCall | CustomToolCall)[];
  /** What the model thought before it called tools in this turn; earlier thoughts are not shown
   *  to it. */
  reasoning_content?: string | null;
  name?: string;
}
export interface ToolMessage {
  role: 'tool';
  content: string | TextPart[];
  tool_call_id: string;
}
/** Not supported: what OpenAI had before tools. */
export interface FunctionMessage {
  role: 'function';
  content: string | null;
  name: string;
}
export type ChatMessage =
  SystemMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage;

export interface Tool {
  type: 'function';
  function: {
    name: string;
    description?: string;
    /** A JSON schema. */
    parameters?: Record<string, unknown>;
    /** True: the arguments keep to the schema, or the request is refused. Absent: they do where
     *  answers are constrained at all and the schema can be kept. */
    strict?: boolean | null;
  };
}

/** Not supported. */
export interface CustomTool {
  type: 'custom';
  custom: { name: string };
}

/** A JSON Schema: an object, or true for any JSON. */
export type JsonSchema = Record<string, unknown> | boolean;

/** What an answer keeps to. */
export type ResponseFormat =
  { type: 'text' }
  // `schema` is not OpenAI's, but llama.cpp's
  | { type: 'json_object'; schema?: JsonSchema | null }
  | { type: 'json_schema'; json_schema: {
    name: string;
    description?: string;
    schema?: JsonSchema;
    /** Answers keep to the schema whatever this says. */
    strict?: boolean | null;
  } }
  /** A grammar in GBNF. */
  | { type: 'grammar'; grammar: string };

export type ToolChoice =
  'none' | 'auto' | 'required'
  | { type: 'function'; function: { name: string } }
  | { type: 'allowed_tools'; allowed_tools: {
    mode: 'auto' | 'required'; tools: readonly Record<string, unknown>[];
  } }
  /** Not supported. */
  | { type: 'custom'; custom: { name: string } };

/** What the content of an answer keeps to, at most one of these. */
export interface ConstraintFields {
  response_format?: ResponseFormat | null;
  /** Not OpenAI's, as in llama.cpp's server: a schema, or a grammar in GBNF. */
  json_schema?: JsonSchema | null;
  grammar?: string | null;
  /** Not OpenAI's: a pattern of ECMA-262, which the whole of the text matches. */
  regex?: string | null;
  /** As in vLLM. */
  structured_outputs?: {
    json?: JsonSchema | string | null; regex?: string | null; choice?: readonly string[] | null;
    grammar?: string | null; json_object?: boolean | null;
  } | null;
  guided_json?: JsonSchema | string | null;
  guided_regex?: string | null;
  guided_choice?: readonly string[] | null;
  guided_grammar?: string | null;
  /** Not OpenAI's: JSON may have line breaks and spaces; else it is compact. */
  json_indent?: boolean | null;
  /** Not OpenAI's: keywords of a schema that cannot be kept exactly are left out; else they are an
   *  error. */
  json_lenient?: boolean | null;
}

/** Not OpenAI's: which adapters this request wants, and how strongly. Others are off for it. */
export interface AdapterUse {
  name: string;
  scale?: number;
}

/** What both kinds of request have. Absent values are as the model's makers recommend. */
export interface SamplingRequest extends ConstraintFields {
  /** Echoed in the answer. */
  model?: string;
  /** -1: no limit. */
  max_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  /** 0 or -1: all of the vocabulary. */
  top_k?: number | null;
  min_p?: number | null;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  /** Not OpenAI's: 1 is neutral. */
  repeat_penalty?: number | null;
  /** Not OpenAI's: how many tokens back the penalties look; -1: over all of the context. */
  repeat_last_n?: number | null;
  /** The same seed, prompt and settings draw the same tokens; -1: any. */
  seed?: number | bigint | null;
  stop?: string | readonly string[] | null;
  /** Token id to a number that is added; -100 forbids the token. */
  logit_bias?: Record<string, number> | null;
  /** Answers; their chunks have the index of theirs. A seed is that of the first, the next has
   *  the one after it. */
  n?: number | null;
  /** As many as `n`. */
  best_of?: number | null;
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean } | null;
  /** Not OpenAI's: adapters for this request alone; absent, all of them at the scale they were
   *  added with. */
  adapters?: readonly AdapterUse[] | null;
  /** Not OpenAI's, as in llama.cpp's server: chunks that say how far the prompt was read. */
  return_progress?: boolean | null;
  /** Not OpenAI's, as there: go on past the end of the text, to max_tokens; for measurements. */
  ignore_eos?: boolean | null;
  /** Not OpenAI's: how a diffusion model denoises; and whether there are chunks with its steps. */
  diffusion?: DiffusionSettings | null;
  return_steps?: boolean | null;
  /** Not OpenAI's: the name of a session, so that its computed tokens are used. */
  session?: string | null;
  /** Requests that name no session go on only from what was computed under the same key. */
  prompt_cache_key?: string | null;
  /** Not part of the request as it travels. */
  signal?: AbortSignal;
  user?: string;
  metadata?: Record<string, string> | null;
  store?: boolean | null;
  service_tier?: string | null;
}

export interface ChatRequestBase extends SamplingRequest {
  messages: readonly ChatMessage[];
  max_completion_tokens?: number | null;
  tools?: readonly (Tool | CustomTool)[] | null;
  tool_choice?: ToolChoice | null;
  parallel_tool_calls?: boolean | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  /** Not OpenAI's: let the model think first; its thoughts arrive as `reasoning_content`. */
  thinking?: boolean | null;
  /** Any effort but 'none' and 'minimal' means `thinking: true`. */
  reasoning_effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | null;
  /** Only 'text' is supported. */
  modalities?: readonly ('text' | 'audio')[] | null;
  /** Not OpenAI's, as in vLLM: the last message is the beginning of the answer, which goes on
   *  from there. */
  continue_final_message?: boolean | null;
  /** Not of OpenAI's chats, but of its Responses. 'auto': a conversation that is longer than the
   *  context loses its oldest messages, and keeps what the system says and the last message.
   *  'disabled' (default): that is an error. */
  truncation?: 'auto' | 'disabled' | null;
  /** Not OpenAI's, as in vLLM: `enable_thinking` is `thinking`. */
  chat_template_kwargs?: { enable_thinking?: boolean; thinking?: boolean } | null;
}
export type ChatRequest = ChatRequestBase & { stream?: boolean | null };
export type ChatStreamRequest = ChatRequestBase & { stream: true };
export type ChatWholeRequest = ChatRequestBase & { stream?: false | null };

export interface TopLogprob {
  token: string;
  logprob: number;
  /** UTF-8, or null for a token that is a part of a character. */
  bytes: number[] | null;
}
export interface TokenInfo extends TopLogprob {
  top_logprobs: TopLogprob[];
}
/** Every token that was drawn, thoughts and calls included; the one that ended the turn is left
 *  out. */
export interface Logprobs {
  content: TokenInfo[];
  refusal: null;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  /** Not OpenAI's: of a diffusion model. */
  diffusion?: DiffusionUsage;
}

/** Not OpenAI's; names as llama.cpp's server has them. */
export interface Timings {
  /** Tokens of the prompt that were still known, and those that had to be read. */
  cache_n: number;
  prompt_n: number;
  /** From the first token read to the first token drawn; of a diffusion model, to the first
   *  canvas. */
  prompt_ms: number;
  prompt_per_second: number;
  predicted_n: number;
  predicted_ms: number;
  /** Of the tokens after the first; of a diffusion model, of all. */
  predicted_per_second: number;
  /** Waiting for others, and from the request to the first token. */
  queue_ms: number;
  ttft_ms: number;
}

export interface PromptProgress {
  total: number;
  cache: number;
  processed: number;
}

/** A call begins with its id and name; deltas of the same index go on with its arguments. */
export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: 'function';
  function: { name?: string; arguments: string };
}
export interface ChatDelta {
  role?: 'assistant';
  content?: string;
  reasoning_content?: string;
  tool_calls?: ToolCallDelta[];
}
export interface ChatCompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: {
    index: number; delta: ChatDelta; finish_reason: FinishReason | null; logprobs: Logprobs | null;
  }[];
  /** With stream_options.include_usage: null but in the last chunk. */
  usage?: Usage | null;
  /** In the chunk that has the finish_reason. */
  timings?: Timings;
  prompt_progress?: PromptProgress;
  /** With `return_steps`. */
  diffusion_step?: DiffusionStep;
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: {
    index: number;
    message: {
      role: 'assistant'; content: string | null; reasoning_content?: string;
      tool_calls?: ToolCall[]; refusal: null;
    };
    finish_reason: FinishReason;
    logprobs: Logprobs | null;
  }[];
  usage: Usage;
  timings: Timings;
}

export interface CompletionRequestBase extends SamplingRequest {
  /** Text or token ids, or a list of either, each of which is answered; absent in a session: go on
   *  from where it is. Text is taken as it is: what spells a special token, such as <turn|>, is
   *  that token, so whoever writes it speaks in any role. Words of others belong into a chat's
   *  messages. */
  prompt?: string | readonly string[] | readonly number[] | readonly (readonly number[])[]
    | Int32Array | null;
  /** How many alternatives to each token. */
  logprobs?: number | null;
  /** The answer begins with the prompt, and log-probabilities with the prompt's; max_tokens may
   *  be 0 then. */
  echo?: boolean | null;
  /** Not supported. */
  suffix?: string | null;
}
export type CompletionRequest = CompletionRequestBase & { stream?: boolean | null };
export type CompletionStreamRequest = CompletionRequestBase & { stream: true };
export type CompletionWholeRequest = CompletionRequestBase & { stream?: false | null };

export interface CompletionLogprobs {
  tokens: string[];
  /** Null for a prompt's first token, before which nothing stands. */
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[];
  text_offset: number[];
}

/** Whole answers and pieces of a stream look alike; all but the last piece have no
 *  finish_reason. */
export interface Completion {
  id: string;
  object: 'text_completion';
  created: number;
  model: string;
  choices: {
    index: number;
    text: string;
    finish_reason: 'stop' | 'length' | null;
    logprobs: CompletionLogprobs | null;
  }[];
  usage?: Usage | null;
  timings?: Timings;
  prompt_progress?: PromptProgress;
  diffusion_step?: DiffusionStep;
}
