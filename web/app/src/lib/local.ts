// local - short texts by name that outlive the tab: wanted before the first paint or written with
// every key, hence localStorage. A browser that refuses storage refuses even to name it, and one
// that is full takes nothing more: what is written then lasts as long as the tab.

/** Whether the browser keeps nothing at all for this page: then it refuses files, locks, caches
 *  and channels too. */
export function isRefused(): boolean {
  try {
    void localStorage;
    return false;
  } catch {
    return true;
  }
}

const here = new Map<string, string>();

/** Undefined where the browser refuses. */
function orRefused<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

export const local = {
  get: (name: string): string | null =>
    here.get(name) ?? orRefused(() => localStorage.getItem(name)) ?? null,

  set(name: string, text: string): void {
    here.set(name, text);
    orRefused(() => {
      localStorage.setItem(name, text);
      here.delete(name);
    });
  },

  remove(name: string): void {
    here.delete(name);
    orRefused(() => localStorage.removeItem(name));
  },

  clear(): void {
    here.clear();
    orRefused(() => localStorage.clear());
  },
};
