// server_with_store - a server that is running, with a page and a store, beside which lie things
// that no client may have.
import fs from 'node:fs';

import { makeStore, startServer, temp } from './server_fixture.mjs';

export const root = `${temp}/store`, app = `${temp}/app`;
export const gemma = {
  model_format: 'gguf', model_family: 'gemma4', model_families: ['gemma4'], model_type: '5.1B',
  file_type: 'Q4_K_M',
};
export const weights = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7) & 255));
export const digests = makeStore(root, {
  'gemma4:e2b': [weights, gemma, { temperature: 1, stop: ['<turn|>'] }],
  'llama:8b': [Buffer.from('other'), { ...gemma, model_family: 'llama' }],
  'canvas:26b': [Buffer.from('third'), { ...gemma, model_family: 'diffusion-gemma' }],
});
fs.mkdirSync(`${app}/assets`, { recursive: true });
fs.writeFileSync(`${temp}/secret.txt`, 'SECRET');
fs.writeFileSync(`${app}/index.html`, '<!doctype html><title>page</title>');
fs.writeFileSync(`${app}/sw.js`, '1');
fs.writeFileSync(`${app}/assets/main-Ab12Cd34.js`, 'export {}');
fs.symlinkSync('../secret.txt', `${app}/link.txt`);
fs.symlinkSync('..', `${app}/up`);
fs.symlinkSync('../../secret.txt', `${root}/blobs/sha256-${'ab'.repeat(32)}`);

export const s = await startServer({ root, app, limits: { bodyBytes: 1 << 20 } });
export const say = (content, more = {}) => ({
  model: 'tiny', messages: [{ role: 'user', content }], ...more,
});
