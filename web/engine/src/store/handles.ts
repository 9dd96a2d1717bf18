// handles - files and folders that a person once picked, remembered in IndexedDB to be read in place again.

import type { StoredModel } from './source_ref.js';

const DATABASE = 'bezel-handles';

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

interface Records {
  files: FileRecord;
  folders: FolderRecord;
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function database(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => {
    for (const store of ['files', 'folders']) request.result.createObjectStore(store, { keyPath: 'key' });
  };
  return done(request);
}

async function use<S extends keyof Records, T>(store: S, mode: IDBTransactionMode, work: (s: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const db = await database();
  try {
    return await done(work(db.transaction(store, mode).objectStore(store)));
  } finally {
    db.close();
  }
}

export const handles = {
  all: <S extends keyof Records>(store: S): Promise<Records[S][]> => use(store, 'readonly', (s) => s.getAll() as IDBRequest<Records[S][]>),
  get: <S extends keyof Records>(store: S, key: string): Promise<Records[S] | undefined> => use(store, 'readonly', (s) => s.get(key) as IDBRequest<Records[S] | undefined>),
  put: async <S extends keyof Records>(store: S, record: Records[S]): Promise<void> => void (await use(store, 'readwrite', (s) => s.put(record))),
  remove: (store: keyof Records, key: string): Promise<undefined> => use(store, 'readwrite', (s) => s.delete(key)),
};
