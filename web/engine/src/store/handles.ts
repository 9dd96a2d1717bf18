// handles - what a store remembers in IndexedDB: files and folders that a person once picked, to be
// read in place again, and what was found when a blob was read as a whole.

import type { StoredModel } from './source_ref.js';

const HANDLES = ['files', 'folders'] as const;

/** A file in its place, under a model's full name. */
export interface FileRecord {
  key: string;
  handle: FileSystemFileHandle;
  model: StoredModel;
  /** PEFT's adapter_config.json. */
  config?: string;
}

export interface FolderRecord {
  key: string;
  handle: FileSystemDirectoryHandle;
}

/** A blob, by its name, as it was when all of it was read. */
export interface BlobRecord {
  key: string;
  size: number;
  modified: number;
  intact: boolean;
}

interface Records {
  files: FileRecord;
  folders: FolderRecord;
  blobs: BlobRecord;
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Blobs have a database of their own: an older version of this package may have the other one
 *  open. */
async function database(store: keyof Records): Promise<IDBDatabase> {
  const request = indexedDB.open(store === 'blobs' ? 'bezel-blobs' : 'bezel-handles', 1);
  request.onupgradeneeded = () => {
    for (const name of store === 'blobs' ? [store] : HANDLES)
      request.result.createObjectStore(name, { keyPath: 'key' });
  };
  return done(request);
}

async function use<S extends keyof Records, T>(
  store: S, mode: IDBTransactionMode, work: (s: IDBObjectStore) => IDBRequest<T>,
): Promise<T> {
  const db = await database(store);
  try {
    return await done(work(db.transaction(store, mode).objectStore(store)));
  } finally {
    db.close();
  }
}

export const handles = {
  all: <S extends keyof Records>(store: S): Promise<Records[S][]> =>
    use(store, 'readonly', (s) => s.getAll() as IDBRequest<Records[S][]>),
  get: <S extends keyof Records>(store: S, key: string): Promise<Records[S] | undefined> =>
    use(store, 'readonly', (s) => s.get(key) as IDBRequest<Records[S] | undefined>),
  put: async <S extends keyof Records>(store: S, record: Records[S]): Promise<void> =>
    void (await use(store, 'readwrite', (s) => s.put(record))),
  remove: (store: keyof Records, key: string): Promise<undefined> =>
    use(store, 'readwrite', (s) => s.delete(key)),
};

/** Without IndexedDB nothing is remembered, and a blob is read again at each load. */
export const blobRecords = {
  all: (): Promise<BlobRecord[]> => handles.all('blobs').catch(() => []),
  get: (key: string): Promise<BlobRecord | undefined> =>
    handles.get('blobs', key).catch(() => undefined),
  put: (record: BlobRecord): Promise<void> => handles.put('blobs', record).catch(() => {}),
};
