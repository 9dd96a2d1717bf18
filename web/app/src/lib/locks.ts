// locks - what one tab does while others wait or know of it. A browser that refuses storage refuses
// locks as well: then each tab is on its own.

/** Whether any tab holds it now. */
export async function isHeld(name: string): Promise<boolean> {
  try {
    const { held = [] } = await navigator.locks.query();
    return held.some((lock) => lock.name === name);
  } catch {
    return false;
  }
}

/** Work that holds a lock; it is told whether it got it. */
export async function locked(
  name: string, options: LockOptions, work: (isMine: boolean) => Promise<void>,
): Promise<void> {
  let begun = false;
  try {
    await navigator.locks.request(name, options, (lock) => {
      begun = true;
      return work(lock !== null);
    });
  } catch (e) {
    if (begun) throw e;
    await work(true);
  }
}
