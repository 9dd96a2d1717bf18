// local_merge - a merge where the files are read: in a worker of the page, or in Node itself. One
// at a time.

import { BezelError } from '../api/errors.js';
import { withMerge } from './merge.js';
import type { MergeCalls } from './merge_to.js';
import type { Handlers } from '../engine/rpc.js';

type Pieces = AsyncGenerator<Uint8Array, void, void>;

export function mergeCalls(): Handlers<MergeCalls> {
  let pieces: Pieces | undefined, over = (): void => {};
  let ended: Promise<unknown> = Promise.resolve();
  return {
    mergeOpen: async (from, { signal }) => {
      if (pieces) throw new BezelError('a merge is under way; one at a time', 'argument');
      return new Promise((opened, failed) => {
        ended = withMerge(from, signal, async (merge) => {
          pieces = merge.pieces();
          opened({ size: merge.size, changed: merge.changed });
          await new Promise<void>((closed) => (over = closed));
        });
        ended.catch(failed);
      });
    },
    mergeNext: async () => {
      if (!pieces) throw new BezelError('no merge is under way', 'argument');
      const { value } = await pieces.next();
      return value ?? undefined;
    },
    mergeClose: async () => {
      await pieces?.return();
      pieces = undefined;
      over();
      await ended.catch(() => {}); // whoever opened it has heard
    },
  };
}
