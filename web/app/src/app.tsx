// app - the frame around the views.

import { useEffect } from 'preact/hooks';
import { ConfirmDialog } from './components/ConfirmDialog';
import { ConversationDialog } from './components/ConversationDialog';
import { DropWindow } from './components/DropWindow';
import { HelpDialog } from './components/HelpDialog';
import { MergeDialog } from './components/MergeDialog';
import { Notices, Spoken } from './components/Notices';
import { ResetDialog } from './components/ResetDialog';
import { Sidebar } from './components/Sidebar';
import { conversation } from './state/chat';
import { mergeDialog } from './state/merge';
import { prefs } from './state/prefs';
import { route, type View } from './state/route';
import { dialog, drawer, question } from './state/ui';
import { Chat } from './views/Chat';
import { Device } from './views/Device';
import { FineTune } from './views/FineTune';
import { Models } from './views/Models';
import { Settings } from './views/Settings';

const views: Record<View, () => preact.JSX.Element> = {
  chat: Chat, models: Models, train: FineTune, device: Device, settings: Settings,
};
const titles: Record<View, string> = {
  chat: '', models: 'Models', train: 'Fine-tune', device: 'Device', settings: 'Settings',
};

export function App() {
  const { view } = route.value;
  const View = views[view];
  const title = titles[view] || conversation.value?.title;
  useEffect(() => {
    document.title = title ? `${title} · Bezel` : 'Bezel';
  }, [title]);
  return (
    <div class={`shell ${prefs.value.sidebar ? '' : 'closed'} ${drawer.value ? 'drawer' : ''}`}>
      <a class="button skip" href="#main"
        onClick={(e) => {
          e.preventDefault();
          (document.getElementById('composer') ?? document.getElementById('main'))?.focus();
        }}>To the content</a>
      <Sidebar />
      <button class="scrim" type="button" aria-label="Close the sidebar"
        tabIndex={drawer.value ? 0 : -1} onClick={() => (drawer.value = false)} />
      <main class="main" id="main" tabIndex={-1} inert={drawer.value}>
        <View />
        {view !== 'chat' && !drawer.value && <Notices />}
      </main>
      {dialog.value === 'conversation' && <ConversationDialog />}
      {dialog.value === 'help' && <HelpDialog />}
      {dialog.value === 'reset' && <ResetDialog />}
      {question.value && <ConfirmDialog asked={question.value} />}
      {mergeDialog.value !== null && <MergeDialog adapter={mergeDialog.value} />}
      <DropWindow />
      <Spoken />
    </div>
  );
}
