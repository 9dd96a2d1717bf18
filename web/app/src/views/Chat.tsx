// Chat - the conversation, and below it the place to write.

import { useEffect } from 'preact/hooks';
import { Composer } from '../components/Composer';
import { BusyNotice, ContextNotice } from '../components/ContextNotice';
import { EngineBanner, LoadCard } from '../components/LoadCard';
import { MessageList } from '../components/MessageList';
import { Notices } from '../components/Notices';
import { SelectionMenu } from '../components/SelectionMenu';
import { TopBar } from '../components/TopBar';
import { conversation, open, thread } from '../state/chat';
import { route } from '../state/route';
import { drawer } from '../state/ui';

export function Chat() {
  const id = route.value.conversation;
  useEffect(() => void open(id), [id]);
  return (
    <>
      <TopBar title={conversation.value?.title || 'New conversation'} />
      <div class="chat">
        {thread.value ? <MessageList /> : <div class="messages" aria-busy="true" />}
        {!drawer.value && <Notices />}
        <SelectionMenu />
        <div class="dock">
          <div>
            <LoadCard />
            <EngineBanner />
            <BusyNotice />
            <ContextNotice />
            <Composer />
          </div>
        </div>
      </div>
    </>
  );
}
