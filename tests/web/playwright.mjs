// playwright - headless Chromium with a profile of its own on disk, driven by playwright-core.
//
//   const { context, close } = await openChromium();
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

const { chromium } =
  createRequire(new URL('../../web/engine/package.json', import.meta.url))('playwright-core');

const find = (program) =>
  execFileSync('/bin/sh', ['-c', 'command -v "$0"', program], { encoding: 'utf8' }).trim();

/** flags: more of them, e.g. those that give a software GPU. */
export async function openChromium({ flags = [] } = {}) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: find(process.env.CHROMIUM ?? 'chromium'),
    headless: true,
    args: [
      '--no-sandbox', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', ...flags,
    ],
  });
  const close = async () => {
    await context.close();
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  return { context, close };
}
