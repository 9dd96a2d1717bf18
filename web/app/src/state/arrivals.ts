// arrivals - what becomes of files that a person drops or picks: models are read where they are,
// adapters go to the library, exported conversations are imported.

import type { Picked } from '../lib/files';
import { importConversations } from './library';
import { addFiles, addFolder } from './models';

const isJson = ({ file }: Picked) => file.name.toLowerCase().endsWith('.json');

export async function takeDropped({
  files, folders,
}: { files: Picked[]; folders: FileSystemDirectoryHandle[] }): Promise<void> {
  for (const folder of folders) await addFolder(folder);
  if (files.length && files.every(isJson))
    for (const { file } of files) await importConversations(file);
  else if (files.length) await addFiles(files);
}
