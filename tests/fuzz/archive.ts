// What an imported conversation passes through, for fuzz_archive.mjs.
export { readArchive } from '../../web/app/src/chat/archive';
export { toRequest } from '../../web/app/src/chat/prompt';
export { newestLeaf, pathTo, placeOf, turns } from '../../web/app/src/chat/tree';
export { History } from '../../web/app/src/storage/history';
