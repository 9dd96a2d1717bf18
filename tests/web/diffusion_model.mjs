// diffusion_model - the diffusion models of the tests: a synthetic one, whose words mean nothing,
// and the trained one.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

/** Written by the native tool: a few MB, a canvas of 48 tokens. */
export function syntheticDiffusion(native = 'build/bezel') {
  const file = `build/tmp/tiny-diffusion-${process.pid}.gguf`;
  fs.mkdirSync('build/tmp', { recursive: true });
  const { status, stderr } = spawnSync(native, ['synth', 'tiny-diffusion', file, '--force']);
  if (status !== 0) throw new Error(`${native} synth: ${stderr}`);
  process.on('exit', () => fs.rmSync(file, { force: true }));
  return file;
}

export const trainedDiffusion = 'models/tiny-diffusion.q8_0.gguf';
