// main - paints the page, then wakes what lies behind it: the history, the model, the offline copy.

import { render } from 'preact';
import './style/tokens.css';
import './style/base.css';
import './style/layout.css';
import './style/chat.css';
import './style/markdown.css';
import './style/views.css';
import { App } from './app';
import { keepOffline } from './lib/offline';
import { listen } from './lib/shortcuts';
import { openLibrary } from './state/library';
import { begin } from './state/models';

const root = document.getElementById('app');
if (!root) throw new Error('the page has no #app');
render(<App />, root);
listen();
void openLibrary();
void begin();
keepOffline();
