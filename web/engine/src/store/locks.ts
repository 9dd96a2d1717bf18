// locks - one tab at a time: Web Locks by name, and nothing where there are none (Node has one
// process).

const locks = (): LockManager | undefined => (globalThis.navigator as Navigator | undefined)?.locks;

/** While anyone holds it, shared, the blob of this name is not deleted. */
export const keepName = (blob: string): string => `bezel:keep:${blob}`;

/** Whoever holds it is the one that writes this blob. */
export const writeName = (blob: string): string => `bezel:write:${blob}`;

/** Manifests are changed, and blobs deleted, by who holds it. */
export const MANIFESTS = 'bezel:manifests';

/** Gives a lock back; settled when it is free. */
export type Release = () => Promise<void>;

/** Wait for a lock and keep it, together with others, until the returned function is called. */
export function holdShared(name: string): Promise<Release> {
  const manager = locks();
  if (!manager) return Promise.resolve(async () => {});
  return new Promise((held, failed) => {
    const ended: Promise<void> = manager
      .request(
        name, { mode: 'shared' }, () => new Promise<void>((free) => held(() => (free(), ended))),
      )
      .then(() => {});
    ended.catch(failed);
  });
}

/** Alone, after whoever is there now. */
export async function alone<T>(
  name: string, work: () => Promise<T>, signal?: AbortSignal,
): Promise<T> {
  const manager = locks();
  if (!manager) return work();
  return manager.request(
    name, { mode: 'exclusive', ...(signal && { signal }) }, work,
  ) as Promise<T>;
}

/** Alone if nobody is there; says whether the work was done. */
export async function ifAlone(name: string, work: () => Promise<void>): Promise<boolean> {
  const manager = locks();
  if (!manager) {
    await work();
    return true;
  }
  return manager.request(name, { mode: 'exclusive', ifAvailable: true }, async (lock) => {
    if (lock) await work();
    return lock !== null;
  }) as Promise<boolean>;
}
