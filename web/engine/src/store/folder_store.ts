// folder_store - the Ollama folder that a person picked, read in place.

import { BezelError, type Core } from '../engine/wasm.js';
import { DirectoryTree, folderAt } from './directory.js';
import { OllamaStore } from './ollama_store.js';
import type { AskableHandle } from './platform.js';

export class FolderStore extends OllamaStore {
  /** The folder is ~/.ollama/models, or one above it. */
  static async open(core: Core, folder: FileSystemDirectoryHandle): Promise<FolderStore> {
    for (const path of [[], ['models'], ['.ollama', 'models']]) {
      const root = await folderAt(folder, path);
      if (root && (await folderAt(root, ['manifests'])))
        return new FolderStore(
          core,
          new DirectoryTree([folder.name, ...path].join('/'), root, (_, handle) =>
            ({ kind: 'handle', handle })),
        );
    }
    throw new BezelError(
      `${folder.name} is not an Ollama store: it has no folder "manifests"`, 'not-found',
    );
  }
}

/** May we read what a person once picked? Asks where a page may ask, which is right after a
 *  click. */
export async function requestAccess(handle: FileSystemHandle): Promise<boolean> {
  const { queryPermission, requestPermission } = handle as AskableHandle;
  if (!queryPermission || (await queryPermission.call(handle, { mode: 'read' })) === 'granted')
    return true;
  return requestPermission !== undefined
    && (await requestPermission.call(handle, { mode: 'read' })) === 'granted';
}

/** Whether requestAccess must be called, on a page, before the handle can be read. */
export async function needsAccess(handle: FileSystemHandle): Promise<boolean> {
  const { queryPermission } = handle as AskableHandle;
  return queryPermission !== undefined
    && (await queryPermission.call(handle, { mode: 'read' })) !== 'granted';
}
