// What is remembered, who wrote it, what the model was told of it and why; and the skills.
import { useState } from 'preact/hooks';
import { ago, clock } from '../lib/format';
import { t } from '../lib/i18n';
import { mayDecide, sessions } from '../lib/store';
import { cut, plain } from '../lib/text';
import { Button, Empty, Fold, Loading, Segmented } from '../ui/basics';
import { FactDetails, FactForm, valueText, why, type BoardName, type Fact } from '../ui/fact';
import { Icon } from '../ui/icons';
import { Markdown } from '../ui/markdown';
import { useFetch } from '../ui/use-fetch';

interface Recalled {
  turn: string;
  at_ms: number;
  said: string;
  recall: { text?: string; facts: { scope: string; key: string; at_ms: number; why: unknown }[]; left_out?: number };
}

type View = 'facts' | 'told' | 'skills';

export function MemoryScreen() {
  const [view, setView] = useState<View>('facts');
  return (
    <div class="page narrow">
      <header class="page-head">
        <div class="grow">
          <h1>{t('nav.memory')}</h1>
          <p class="muted">{t('memory.about')}</p>
        </div>
      </header>
      <Segmented
        label={t('nav.memory')}
        value={view}
        options={[
          ['facts', t('memory.facts')],
          ['told', t('memory.told')],
          ['skills', t('memory.skills')],
        ]}
        onChange={setView}
      />
      {view === 'facts' ? <Facts /> : view === 'told' ? <Told /> : <Skills />}
    </div>
  );
}

function Facts() {
  const [change, setChange] = useState(0);
  const { data, error } = useFetch<{ boards: { board: BoardName; facts: Fact[] }[] }>('/memory', change);
  const [words, setWords] = useState('');
  const [adding, setAdding] = useState(false);
  const changed = () => {
    setAdding(false);
    setChange((count) => count + 1);
  };
  const boards = data?.boards ?? [];
  const low = words.toLowerCase();
  const match = (fact: Fact) => !low || `${fact.key} ${valueText(fact.value)}`.toLowerCase().includes(low);
  const count = boards.reduce((sum, board) => sum + board.facts.length, 0);
  if (error) return <p class="error-text">{error}</p>;
  if (!data) return <Loading />;
  return (
    <>
      <div class="row wrap">
        <label class="search grow">
          <Icon name="search" size={16} />
          <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} placeholder={t('memory.search')} aria-label={t('memory.search')} />
        </label>
        {mayDecide.value && (
          <Button icon="plus" onClick={() => setAdding(true)}>
            {t('memory.add')}
          </Button>
        )}
      </div>
      {count === 0 && <Empty icon="memory" title={t('memory.empty')} />}
      {adding && <FactForm board={null} fact={null} onClose={() => setAdding(false)} onDone={changed} />}
      {boards.map(({ board, facts }) => {
        const found = facts.filter(match);
        if (found.length === 0) return null;
        return (
          <section key={board}>
            <h2>{t(board === 'user' ? 'memory.of_user' : 'memory.of_project')}</h2>
            <ul class="rows card flush">
              {found.map((fact) => (
                <li key={fact.key}>
                  <Fold
                    class="fact"
                    head={
                      <>
                        <code>{fact.key}</code>
                        <span class="grow ellipsis">{cut(plain(valueText(fact.value)), 160)}</span>
                        <span class="muted small nowrap">{ago(fact.at_ms)}</span>
                      </>
                    }
                  >
                    {() => <FactDetails board={board} fact={fact} onChanged={changed} />}
                  </Fold>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </>
  );
}

/** What the model was told from memory in a session, turn by turn. */
function Told() {
  const [session, setSession] = useState(sessions.value[0]?.session ?? '');
  const { data, error } = useFetch<{ recalled: Recalled[] }>(session ? `/sessions/${session}/memory` : null);
  return (
    <>
      <label class="inline-field">
        {t('memory.session')}
        <select value={session} onChange={(event) => setSession(event.currentTarget.value)}>
          {sessions.value.map((row) => (
            <option key={row.session} value={row.session}>
              {row.preview.slice(0, 80) || t('session.empty')}
            </option>
          ))}
        </select>
      </label>
      {error && <p class="error-text">{error}</p>}
      {data && data.recalled.length === 0 && <Empty icon="memory" title={t('memory.told_nothing')} />}
      <div class="stack">
        {(data?.recalled ?? []).map((turn) => (
          <article key={turn.turn} class="card">
            <p class="small">
              <span class="muted">{clock(turn.at_ms)}</span> “{cut(plain(turn.said), 160)}”
            </p>
            {turn.recall.facts.length === 0 ? (
              <p class="muted small">{t('memory.told_nothing')}</p>
            ) : (
              <ul class="told">
                {turn.recall.facts.map((fact) => (
                  <li key={`${fact.scope} ${fact.key}`}>
                    <code>{fact.key}</code> <span class="muted small">{why(fact.why)}</span>
                  </li>
                ))}
              </ul>
            )}
            {!!turn.recall.left_out && <p class="muted small">{t('memory.left_out', { count: turn.recall.left_out })}</p>}
          </article>
        ))}
      </div>
    </>
  );
}

function Skills() {
  const { data } = useFetch<{ skills: { name: string; description: string }[] }>('/complete');
  const skills = data?.skills ?? [];
  if (skills.length === 0) return <Empty icon="book" title={t('memory.no_skills')} />;
  return (
    <ul class="rows card flush">
      {skills.map((skill) => (
        <li key={skill.name} class="row-link top">
          <Icon name="book" size={16} />
          <code class="nowrap">/{skill.name}</code>
          <span class="grow small">
            <Markdown text={skill.description} />
          </span>
        </li>
      ))}
    </ul>
  );
}
