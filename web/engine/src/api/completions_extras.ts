// completions_extras - fields of other servers that clients send without a wish of their own:
// accepted where they ask for nothing, and an error that names them where they ask for what this
// engine does not do.

import { BezelError, brief, show } from './errors.js';

type Fields = Readonly<Record<string, unknown>>;

/** Of a service, of how a server keeps its cache or its models, or a way to be quicker; no
 *  effect on an answer. */
export const withoutEffect = [
  'user', 'metadata', 'store', 'service_tier', 'safety_identifier', 'prompt_cache_key',
  'prompt_cache_retention', 'cache_prompt', 'prediction', 'draft_model',
  'ttl', 'keep_alive',
  // Details of methods that are off, see below.
  'mirostat_tau', 'mirostat_eta', 'xtc_threshold', 'dry_base', 'dry_allowed_length',
  'dry_penalty_last_n', 'dry_sequence_breakers', 'dynatemp_exponent',
];

/** The values that ask for nothing, of llama.cpp's, vLLM's, Ollama's and OpenAI's own fields.
 *  The first is named in errors. */
export const neutral: Readonly<Record<string, readonly unknown[]>> = {
  typical_p: [1], typ_p: [1], tfs_z: [1], mirostat: [0], top_a: [0], top_n_sigma: [-1, 0],
  xtc_probability: [0], dry_multiplier: [0], dynatemp_range: [0],
  repetition_penalty: [1], length_penalty: [1], min_tokens: [0], use_beam_search: [false],
  skip_special_tokens: [true], spaces_between_special_tokens: [true],
  include_stop_str_in_output: [false], penalize_nl: [false], add_generation_prompt: [true],
  verbosity: ['medium'],
  n_predict: [-1], n_probs: [0], min_keep: [0], id_slot: [-1], timings_per_token: [false],
  return_tokens: [false], reasoning_format: ['auto', 'deepseek'],
  typical: [1], do_sample: [true], early_stopping: [false], num_beams: [1], min_length: [0],
  guidance_scale: [1], priority: [0], detokenize: [true],
  include_reasoning: [true], think: [false], enable_thinking: [false],
  function_call: ['auto', 'none'],
};

/** An empty text, list or object of a field that is not known here: whatever it is, it asks for
 *  nothing. */
export const isEmpty = (value: unknown): boolean =>
  value === '' || (typeof value === 'object' && value !== null && !Object.keys(value).length);

export function checkNeutral(fields: Fields): void {
  for (const [name, values] of Object.entries(neutral)) {
    const value = fields[name];
    if (value !== undefined && !values.includes(value))
      throw new BezelError(
        `"${name}" must be ${JSON.stringify(values[0])}, which asks for nothing: `
          + `what ${show(value)} asks for is not supported`,
        'unsupported',
        undefined,
        name,
      );
  }
  const { best_of: best, n = 1 } = fields;
  if (best !== undefined && best !== n)
    throw new BezelError(
      '"best_of" must be as many answers as "n" asks for: this engine makes no '
        + 'others to choose from',
      'unsupported',
      undefined,
      'best_of',
    );
}

/** Whether the model shall think, where the arguments of a chat's template say so; Gemma's
 *  template has no others. */
export function templateThinking(given: unknown): boolean | undefined {
  const name = 'chat_template_kwargs';
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new BezelError(`"${name}" must be an object`, 'argument', undefined, name);
  let thinking: boolean | undefined;
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined) continue;
    if (key !== 'enable_thinking' && key !== 'thinking')
      throw new BezelError(
        `the model's template has no argument ${show(key)}; "enable_thinking" is one`,
        'unsupported',
        undefined,
        `${name}.${brief(key)}`,
      );
    if (typeof value !== 'boolean')
      throw new BezelError(
        `"${name}.${key}" must be true or false, not ${show(value)}`,
        'argument',
        undefined,
        `${name}.${key}`,
      );
    thinking = value;
  }
  return thinking;
}
