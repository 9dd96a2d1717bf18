// Models - what can answer here: the small model of the page, what is stored, what the server and a
// folder have.

import { useEffect } from 'preact/hooks';
import { AdapterRows } from '../components/AdapterRows';
import { DropZone } from '../components/DropZone';
import { Icon } from '../components/Icon';
import { EngineBanner, LoadCard } from '../components/LoadCard';
import { ModelRows } from '../components/ModelRows';
import { TopBar } from '../components/TopBar';
import { Transfers } from '../components/Transfers';
import { count } from '../lib/format';
import { folder, forgetFolder, groups, look, openFolder, pickFolder } from '../state/models';
import { notifyError } from '../state/notices';
import { prefs, setPrefs } from '../state/prefs';

function folderText(name: string | undefined, open: boolean) {
  if (name)
    return open
      ? <>Reading <strong>{name}</strong> in place.</>
      : <><strong>{name}</strong> was opened before; the browser asks again.</>;
  if ('showDirectoryPicker' in window)
    return (
      <>
        Ollama keeps its models in <code>~/.ollama/models</code>. Open that folder, or one with GGUF
        files, to use them in place, without a copy.
      </>
    );
  return <>This browser cannot open folders; choose a file instead.</>;
}

function Folder() {
  const { handle, open } = folder.value;
  return (
    <div class="drop">
      <Icon name="folder" />
      <p>{folderText(handle?.name, open)}</p>
      {handle && !open && <button class="button" type="button"
        onClick={() => openFolder().catch(notifyError)}>Open again</button>}
      {handle && <button class="button" type="button"
        onClick={() => forgetFolder().catch(notifyError)}>Forget</button>}
      {!handle && 'showDirectoryPicker' in window && <button class="button" type="button"
        onClick={() => pickFolder().catch(notifyError)}>Open a folder</button>}
    </div>
  );
}

const sizes = [0, 2048, 4096, 8192, 16384, 32768, 65536, 131072];

function Context() {
  // one that was chosen elsewhere too
  const shown = [...new Set([...sizes, prefs.value.context])].sort((a, b) => a - b);
  return (
    <div class="card row spread">
      <div class="field">
        <label for="context">Context</label>
        <span class="hint">
          Tokens that a conversation may have. More takes more memory; it counts from the next load.
        </span>
      </div>
      <select class="input select" id="context" value={prefs.value.context}
        onChange={(e) => setPrefs({ context: Number(e.currentTarget.value) })}>
        {shown.map((n) => <option key={n} value={n}>{n ? count(n) : 'Automatic'}</option>)}
      </select>
    </div>
  );
}

export function Models() {
  useEffect(() => void look(), []);
  return (
    <>
      <TopBar />
      <div class="view">
        <div class="page">
          <div class="page-head">
            <h1>Models</h1>
            <p>
              Gemma 4 in GGUF files, as Ollama and others keep them. They run here and go nowhere.
            </p>
          </div>
          <LoadCard />
          <EngineBanner />
          {groups.value.map((group) =>
            <ModelRows key={group.label} label={group.label} entries={group.entries} />)}
          <AdapterRows />
          <section class="section"><h2>How they are loaded</h2><Context /></section>
          <section class="section"><h2>From this computer</h2><DropZone /><Folder /></section>
          <Transfers />
        </div>
      </div>
    </>
  );
}
