import { useEffect, useMemo } from 'preact/hooks';
import { folderName } from '../app';
import { post } from '../lib/api';
import { dollars, tokens } from '../lib/format';
import { t } from '../lib/i18n';
import { isBusy, openQuestions, type Model } from '../lib/model';
import { link } from '../lib/router';
import { explain, loadSession, mayWrite, sessionOf, sessions, type Held } from '../lib/store';
import { Badge, Button, LinkTabs, Loading, Menu, toast, type TabItem } from '../ui/basics';
import { AgentScreen } from './agent';
import { ChatScreen } from './chat';
import { MessagesScreen } from './messages';
import { PlanScreen } from './plan';
import { ReplayScreen } from './replay';
import { ReviewScreen } from './review';
import { TeamScreen } from './team';
import { TimelineScreen } from './timeline';
import { TraceScreen } from './trace';

export interface SessionProps {
  id: string;
  held: Held;
  model: Model;
  /** Changes with the model. */
  version: number;
  rest: string[];
}

const SCREENS = {
  chat: ChatScreen,
  plan: PlanScreen,
  timeline: TimelineScreen,
  replay: ReplayScreen,
  messages: MessagesScreen,
  team: TeamScreen,
  review: ReviewScreen,
  trace: TraceScreen,
  agent: AgentScreen,
} as const;

export function SessionScreen({ id, tab, rest }: { id: string; tab: string; rest: string[] }) {
  const held = sessionOf(id);
  useEffect(() => {
    void loadSession(id);
  }, [id]);
  const version = held.version.value ?? 0;
  const loaded = held.loaded.value;
  // The model is changed in place; a new object for each change lets components see it.
  const model = useMemo(() => ({ ...held.model }), [held, version]);
  const Screen = SCREENS[tab as keyof typeof SCREENS] ?? ChatScreen;
  return (
    <div class={`session-page tab-${tab}`}>
      <SessionHead id={id} model={model} tab={tab} />
      {loaded === 'failed' ? (
        <div class="page">
          <p class="error-text" role="alert">
            {held.error}
          </p>
          <Button onClick={() => void loadSession(id)}>{t('do.retry')}</Button>
        </div>
      ) : loaded !== 'yes' ? (
        <Loading />
      ) : (
        <Screen id={id} held={held} model={model} version={version} rest={rest} />
      )}
    </div>
  );
}

export async function act(path: string, body?: unknown, done?: string): Promise<boolean> {
  try {
    await post(path, body);
    if (done) toast(done);
    return true;
  } catch (error) {
    toast(explain(error), 'error');
    return false;
  }
}

function SessionHead({ id, model, tab }: { id: string; model: Model; tab: string }) {
  const row = sessions.value.find((one) => one.session === id);
  const firstSaid = model.items.find((item) => item.k === 'user');
  const title = (firstSaid?.k === 'user' ? firstSaid.text.split('\n')[0] : '') || row?.preview || t('session.empty');
  const asked = openQuestions(model).length;
  const busy = isBusy(model);
  const used = model.usage.input + model.usage.output + model.usage.cache_read + model.usage.cache_write;
  const tabs: TabItem[] = [
    { id: 'chat', label: t('tab.chat'), icon: 'chat', href: link(['s', id, 'chat']) },
    { id: 'plan', label: t('tab.plan'), icon: 'plan', href: link(['s', id, 'plan']), count: [...model.plans.values()].filter((plan) => plan.endedAt === null).length },
    { id: 'timeline', label: t('tab.timeline'), icon: 'timeline', href: link(['s', id, 'timeline']) },
    { id: 'replay', label: t('tab.replay'), icon: 'replay', href: link(['s', id, 'replay']) },
    { id: 'messages', label: t('tab.messages'), icon: 'messages', href: link(['s', id, 'messages']) },
    { id: 'team', label: t('tab.team'), icon: 'team', href: link(['s', id, 'team']) },
    { id: 'review', label: t('tab.review'), icon: 'review', href: link(['s', id, 'review']) },
    { id: 'trace', label: t('tab.trace'), icon: 'trace', href: link(['s', id, 'trace']) },
  ];
  return (
    <header class="session-head">
      <div class="session-line">
        <h1 class="grow ellipsis" title={title}>
          {title}
        </h1>
        {asked > 0 ? <Badge state="waiting" text={t('state.waits_for_you')} /> : busy ? <Badge state="busy" /> : <Badge state="ready" text={t('state.idle')} />}
        <span class="muted small nowrap hide-phone" title={row?.cwd}>
          {row && folderName(row.cwd)} · {t('cost.tokens', { count: tokens(used) })} · {dollars(model.usd)}
        </span>
        {mayWrite.value && (
          <Menu
            label={t('session.actions')}
            items={[
              { label: t('session.stop_all'), icon: 'stop', danger: true, onPick: () => void act(`/sessions/${id}/stop`, {}, t('session.stopped')) },
              { label: t('session.continue'), icon: 'play', onPick: () => void act(`/sessions/${id}/continue`, {}, t('session.continued')) },
              { label: t('session.open'), icon: 'now', onPick: () => void act(`/sessions/${id}/open`, {}, t('session.opened')) },
            ]}
          />
        )}
      </div>
      <LinkTabs label={t('session.views')} items={tabs} current={tab === 'agent' ? 'team' : tab} />
    </header>
  );
}
