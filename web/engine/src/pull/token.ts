// token - the hub's token of this person, from where the hub's own tools keep it. It is sent to the
// hub and shown nowhere.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import { BezelError } from '../api/errors.js';

export interface Token {
  value: string;
  /** Where it is from, for people. */
  from: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

function checked(text: string, from: string): Token | undefined {
  const value = text.trim();
  if (!value) return undefined;
  // not repeated: it may be a secret all the same
  if (!/^[\x21-\x7e]+$/.test(value))
    throw new BezelError(`${from} holds no token: it has spaces or control characters`, 'argument');
  return { value, from };
}

/** HF_TOKEN, or the file that `hf auth login` writes. */
export function hubToken(env: Environment = process.env): Token | undefined {
  for (const name of ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN']) {
    const found = checked(env[name] ?? '', name);
    if (found) return found;
  }
  const home = env.HF_HOME
    ?? path.join(env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'huggingface');
  const file = env.HF_TOKEN_PATH ?? path.join(home, 'token');
  try {
    return checked(fs.readFileSync(file, 'utf8'), file);
  } catch (e) {
    if (['ENOENT', 'ENOTDIR'].includes((e as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw e instanceof BezelError
      ? e
      : new BezelError(`${file}: cannot be read: ${(e as Error).message}`, 'io', e);
  }
}
