import { useState } from 'preact/hooks';
import { post } from '../lib/api';
import { t } from '../lib/i18n';
import { go } from '../lib/router';
import { explain, mayWrite, me, refreshSoon } from '../lib/store';
import type { SessionRow } from '../lib/types';
import { toast } from '../ui/basics';
import { Composer } from '../ui/composer';
import { Logo } from '../ui/icons';
import { folderName } from '../app';

/** Begins a session; its files, if there are any, are put into it before the message. */
async function begin(): Promise<string> {
  return (await post<{ session: SessionRow }>('/sessions', {})).session.session;
}

async function say(text: string, begun: string | null): Promise<boolean> {
  try {
    const session = begun ?? (await post<{ session: SessionRow }>('/sessions', { text })).session.session;
    if (begun) await post(`/sessions/${begun}/messages`, { text });
    refreshSoon(0);
    go(['s', session, 'chat']);
    return true;
  } catch (error) {
    toast(explain(error), 'error');
    return false;
  }
}

export function NewChatScreen() {
  return (
    <div class="page new-chat-page">
      <Starters />
    </div>
  );
}

/** A message to begin with, and examples to try. */
export function Starters() {
  const [busy, setBusy] = useState(false);
  const demo = me.value?.demo;
  const examples = demo ? [demo.prompt] : [t('new.example1'), t('new.example2'), t('new.example3')];
  const send = async (text: string, _wait = false, begun: string | null = null) => {
    setBusy(true);
    const done = await say(text, begun);
    setBusy(false);
    return done;
  };
  return (
    <div class="starters">
      <Logo size={52} />
      <h1>{t('new.title')}</h1>
      <p class="muted">{t('new.about', { folder: folderName(me.value?.folder ?? '') })}</p>
      <Composer session={null} busy={false} disabled={busy || !mayWrite.value} onSend={send} begin={begin} autofocus />
      <div class="examples">
        {examples.map((text) => (
          <button key={text} type="button" class="example" disabled={busy || !mayWrite.value} onClick={() => void send(text)}>
            {text}
          </button>
        ))}
      </div>
    </div>
  );
}
