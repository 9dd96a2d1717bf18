// Chat - the conversation, and below it the place to write.

import { useEffect } from 'preact/hooks';
import { Composer } from '../components/Composer';
import { EngineBanner, LoadCard } from '../components/LoadCard';
import { MessageList } from '../components/MessageList';
import { TopBar } from '../components/TopBar';
import { conversation, open, thread } from '../state/chat';
import { route } from '../state/route';

export function Chat() {
  const id = route.value.conversation;
  useEffect(() => void open(id), [id]);
  return (
    <>
      <TopBar title={conversation.value?.title || 'New conversation'} />
      <div class="chat">
        {thread.value ? <MessageList /> : <div class="messages" aria-busy="true" />}
        <div class="dock">
          <div>
            <LoadCard />
            <EngineBanner />
            <Composer />
          </div>
        </div>
      </div>
    </>
  );
}
