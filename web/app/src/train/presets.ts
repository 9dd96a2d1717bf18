// presets - how much is learned, and how fast: three starting points that fit the size of the
// model.

import type { TrainOptions, TrainPreview, TrainSchedule } from 'bezel';

export type Preset = 'quick' | 'balanced' | 'thorough';
export type Targets = 'all' | 'attention' | 'feed-forward';

/** What a person can set. */
export interface TrainSettings {
  rank: number;
  alpha: number;
  targets: Targets;
  learningRate: number;
  schedule: TrainSchedule;
  epochs: number;
  /** Tokens of an example at most. */
  sequence: number;
  seed: number;
}

export const presets: { preset: Preset; label: string; hint: string }[] = [
  {
    preset: 'quick',
    label: 'Quick',
    hint: 'A first try: few times through the data, a small adapter.',
  },
  { preset: 'balanced', label: 'Balanced', hint: 'For most data.' },
  {
    preset: 'thorough',
    label: 'Thorough',
    hint: 'A larger adapter, more often and more slowly. Takes several times as long.',
  },
];

/** Small models want large steps: 2e-4 is usual for a few billion parameters. One digit is
 *  precise enough. */
function rateFor(parameters: number, share: number): number {
  const rate = share * Math.min(5e-3, Math.max(5e-5, 2e-4 * Math.sqrt(5e9 / parameters)));
  return Number(rate.toPrecision(1));
}

export function settingsOf(preset: Preset, parameters: number): TrainSettings {
  const [rank, epochs, share] = {
    quick: [8, 3, 1], balanced: [16, 6, 1], thorough: [32, 12, 0.5],
  }[preset] as [number, number, number];
  return {
    rank, alpha: 2 * rank, targets: 'all', learningRate: rateFor(parameters, share),
    schedule: 'cosine', epochs, sequence: 512, seed: 0,
  };
}

const patterns: Record<Targets, readonly string[] | undefined> = {
  all: undefined, attention: ['attn_'], 'feed-forward': ['ffn_'],
};

// of an epoch: few examples are packed less tightly, so that there are steps enough
const SEQUENCES = 32;
const EVAL_FROM = 20; // examples, of which a few can be spared
const EVALS = 10; // points of the curve

/** For the engine, and this data. */
export function optionsOf(
  s: TrainSettings,
  { tokens, examples, longest }: Pick<TrainPreview, 'tokens' | 'examples' | 'longest'>,
): Omit<TrainOptions, 'data'> {
  const targets = patterns[s.targets];
  const sequence = Math.min(s.sequence, Math.max(longest, 16 * Math.ceil(tokens / SEQUENCES / 16)));
  const steps = Math.ceil(tokens / sequence) * s.epochs;
  return {
    rank: s.rank, alpha: s.alpha, learningRate: s.learningRate, schedule: s.schedule,
    epochs: s.epochs, sequence, seed: s.seed,
    ...(targets && { targets }),
    ...(examples >= EVAL_FROM && { evalShare: 0.05 }),
    evalEvery: Math.max(1, Math.round(steps / EVALS)),
  };
}
