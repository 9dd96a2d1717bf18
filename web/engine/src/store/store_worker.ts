// worker - the thread that writes the store's files: a page's Store talks to it through rpc.ts.

import { serve, type Port } from '../engine/rpc.js';
import { storeCalls, type StoreCalls, type StoreStreams } from './calls.js';

serve<StoreCalls, StoreStreams>(globalThis as unknown as Port, storeCalls(), {});
