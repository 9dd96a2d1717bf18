// download - one blob from an address into the store: resumed, verified, and by one tab at a time.

import { BezelError, type Core } from '../engine/wasm.js';
import { Sha256, sha256 } from './digest.js';
import { alone, holdShared, keepName, writeName, type Release } from './locks.js';
import { blobName } from './manifest.js';
import { fetchRange, RemoteChanged, shortUrl, type Patience, type Remote } from './net.js';
import { follow, Reporter, type StoreProgress } from './news.js';
import { PartialFile } from './partial.js';
import { isError } from './platform.js';
import { needRoom, noRoom } from './room.js';
import { isIntact, knownState, remember } from './verified.js';
import { blobSource } from '../load/source.js';

const MAX_RESTARTS = 3;

/** Where blobs and unfinished ones lie. */
export interface BlobFolders {
  readonly blobs: FileSystemDirectoryHandle;
  readonly partial: FileSystemDirectoryHandle;
}

export interface Wanted {
  url: string;
  /** 64 hex digits; without it what comes decides the name. */
  digest?: string;
  size?: number;
  /** For people. */
  label: string;
}

export interface DownloadOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ((p: StoreProgress) => void) | undefined;
  patience?: Partial<Patience> | undefined;
  /** The version of this address that the store already has. */
  have?: () => Promise<string | undefined>;
  /** Done with the blob before another tab gets its turn. */
  onPlaced?: (got: Downloaded) => Promise<void>;
  /** Sees the first bytes before they are written; throws to leave it. */
  onHead?: (head: Uint8Array) => void;
}

export interface Downloaded {
  digest: string;
  size: number;
  version: string | undefined;
  /** Until this is called nobody deletes the blob. */
  release: Release;
}

export async function blobSize(
  folder: FileSystemDirectoryHandle, digest: string,
): Promise<number | undefined> {
  try {
    return (await (await folder.getFileHandle(blobName(digest))).getFile()).size;
  } catch (e) {
    if (isError(e, 'NotFoundError')) return undefined;
    throw e;
  }
}

/** The store has what the address has. */
export class Unchanged extends Error {}

/** The bytes did not hash to what they should. */
class WrongDigest extends BezelError {}

class Download {
  private readonly key: string;

  constructor(
    private readonly core: Core,
    private readonly folders: BlobFolders,
    private readonly wanted: Wanted,
    private readonly options: DownloadOptions,
  ) {
    this.key = wanted.digest
      ? blobName(wanted.digest)
      : `url-${sha256(core, new TextEncoder().encode(wanted.url))}`;
  }

  async run(): Promise<Downloaded> {
    const { onProgress, signal } = this.options;
    const unfollow = follow(this.key, onProgress);
    onProgress?.({ phase: 'waiting', loaded: 0, total: this.wanted.size ?? 0 });
    try {
      return await alone(writeName(this.key), () => (unfollow(), this.placed()), signal);
    } finally {
      unfollow();
    }
  }

  private async placed(): Promise<Downloaded> {
    const got = await this.unlessThere();
    try {
      await this.options.onPlaced?.(got);
      return got;
    } catch (e) {
      await got.release();
      throw e;
    }
  }

  private async unlessThere(): Promise<Downloaded> {
    const { digest, size } = this.wanted;
    if (digest) {
      const release = await holdShared(keepName(blobName(digest)));
      try {
        const have = await blobSize(this.folders.blobs, digest);
        if (have !== undefined && (size === undefined || have === size)
          && (await this.isIntact(digest)))
          return { digest, size: have, version: undefined, release };
      } catch (e) {
        await release();
        throw e;
      }
      await release();
    }
    await this.unlessSame();
    const reporter = new Reporter(this.key, this.options.onProgress);
    try {
      return await this.attempts(reporter);
    } finally {
      reporter.close();
    }
  }

  /** A blob that is there and damaged is fetched again. */
  private async isIntact(digest: string): Promise<boolean> {
    const { blobs } = this.folders, blob = blobName(digest);
    const reporter = new Reporter(this.key, this.options.onProgress);
    try {
      const source = blobSource(await (await blobs.getFileHandle(blob)).getFile());
      return await isIntact(this.core, blobs, blob, source, {
        signal: this.options.signal,
        onProgress: (loaded, total) => reporter.report({ phase: 'verify', loaded, total }),
      });
    } finally {
      reporter.close();
    }
  }

  /** Another tab may have just finished, or the address was pulled before: ask for one byte to
   *  find out. */
  private async unlessSame(): Promise<void> {
    const have = await this.options.have?.();
    if (have === undefined) return;
    const onRemote = ({ version }: Remote): void => {
      if (version === have) throw new Unchanged();
    };
    const { signal, patience } = this.options;
    for await (const _ of fetchRange(this.wanted.url, 0, {
      end: 1, whole: true, onRemote, signal, patience,
    }))
      ;
  }

  private async attempts(reporter: Reporter): Promise<Downloaded> {
    for (let restarts = 0; ; restarts++) {
      const part = await PartialFile.open(this.folders.partial, this.key);
      const resumed = part.bytes > 0;
      try {
        return await this.attempt(part, reporter);
      } catch (e) {
        // What an earlier attempt left behind may be to blame: once more, from the beginning.
        const fresh = e instanceof RemoteChanged || e instanceof WrongDigest;
        if (fresh || part.bytes === 0) await part.discard();
        else part.close();
        if (isError(e, 'QuotaExceededError'))
          throw await noRoom(
            this.wanted.label, Math.max(1, (part.journal.size ?? 0) - part.journal.bytes), e,
          );
        const again = e instanceof RemoteChanged
          ? restarts < MAX_RESTARTS
          : e instanceof WrongDigest && resumed;
        if (!again) throw e;
      }
    }
  }

  /** Can the bytes of an earlier attempt be continued from this address? */
  private canResume({ journal, bytes }: PartialFile): boolean {
    if (bytes === 0) return false;
    return this.wanted.digest !== undefined
      || (journal.url === this.wanted.url && journal.version !== undefined);
  }

  private async attempt(part: PartialFile, reporter: Reporter): Promise<Downloaded> {
    const { url, label, digest: wish } = this.wanted;
    const { signal, patience } = this.options;
    if (!this.canResume(part)) part.reset({ url, label });
    const { journal } = part;
    const sameUrl = journal.url === url;
    const size = this.wanted.size ?? (sameUrl ? journal.size : undefined);
    const version = sameUrl ? journal.version : undefined;
    const hash = new Sha256(this.core);
    try {
      await part.rehash(
        hash, (loaded) => reporter.report({ phase: 'verify', loaded, total: part.bytes }), signal,
      );
      const known = {
        ...(size !== undefined && { size }), ...(version !== undefined && { version }),
      };
      const onRemote = async (remote: Remote): Promise<void> => {
        if (remote.size !== undefined) await needRoom(label, remote.size - part.bytes);
        part.journal = {
          bytes: part.journal.bytes,
          url,
          label,
          ...(remote.size !== undefined && { size: remote.size }),
          ...(remote.version !== undefined && { version: remote.version }),
        };
        part.checkpoint();
      };
      if (size === undefined || part.bytes < size) {
        for await (const piece of fetchRange(url, part.bytes, {
          known, whole: true, onRemote, signal, patience,
        })) {
          if (part.bytes === 0) this.options.onHead?.(piece);
          part.append(piece);
          hash.update(piece);
          reporter.report({ phase: 'download', loaded: part.bytes, total: part.journal.size ?? 0 });
        }
      }
    } catch (e) {
      hash.end();
      throw e;
    }
    const digest = hash.end();
    if (wish !== undefined && digest !== wish.toLowerCase())
      throw new WrongDigest(
        `what came from ${shortUrl(url)} is not ${label}: its sha256 is ${digest.slice(0, 12)}… `
          + `and should be ${wish.slice(0, 12)}…; it was removed`,
        'format',
      );
    return placeBlob(this.folders, part, digest);
  }
}

/** A finished file gets its name, which is its digest. */
export async function placeBlob(
  folders: BlobFolders, part: PartialFile, digest: string,
): Promise<Downloaded> {
  const blob = blobName(digest);
  const release = await holdShared(keepName(blob));
  const size = part.bytes, { version } = part.journal;
  const place = async (): Promise<void> => {
    // A blob that is there is perhaps being read: it stays, unless it is not what it should be.
    const known = await knownState(folders.blobs, blob);
    if (known !== 'damaged' && (await blobSize(folders.blobs, digest)) === size)
      return part.discard();
    await part.finish(folders.blobs, blob).catch((e: unknown) => {
      if (!isError(e, 'NoModificationAllowedError')) throw e;
      throw new BezelError(
        'the damaged file is still open in another tab; close that tab and pull it again', 'io', e,
      );
    });
    await remember(folders.blobs, blob, true);
  };
  try {
    // Who writes under this name has the lock; who learns the name only now must get it.
    await (part.key === blob ? place() : alone(writeName(blob), place));
    return { digest, size, version, release };
  } catch (e) {
    await release();
    throw e;
  }
}

export function download(
  core: Core, folders: BlobFolders, wanted: Wanted, options: DownloadOptions = {},
): Promise<Downloaded> {
  return new Download(core, folders, wanted, options).run();
}
