#!/usr/bin/env node
// bezel - the command-line tool, for Node.
import { main } from '../dist/cli/main.js';

process.exitCode = await main(process.argv.slice(2));
