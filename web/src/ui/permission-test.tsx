// Asks what would become of a call: allowed, asked about or denied, and by which rule.
import { useEffect, useState } from 'preact/hooks';
import { get, post } from '../lib/api';
import { language, t, word, type Key } from '../lib/i18n';
import { explain } from '../lib/store';
import type { Member } from '../lib/types';
import { Badge, Button } from './basics';

interface Verdict {
  verdict: 'allow' | 'ask' | 'deny';
  rule: string;
  rule_zh: string;
  origin: null | { scope: string; file: string; line?: number };
  hint: string;
  remember: string[];
  target: string;
  tool: string;
  mode: string;
  offered: boolean;
}

const TOOLS: [string, Key, string][] = [
  ['run_shell', 'permission.tool_command', 'rm -rf build'],
  ['read_file', 'permission.tool_read', 'src/main.rs'],
  ['write_file', 'permission.tool_write', 'src/main.rs'],
  ['web_fetch', 'permission.tool_fetch', 'https://example.com/page'],
];
const STATES = { allow: 'done', ask: 'waiting', deny: 'refused' };
const MODES = ['default', 'acceptEdits', 'auto', 'plan', 'dontAsk', 'bypassPermissions'];

export function PermissionTest() {
  const [members, setMembers] = useState<Member[]>([]);
  const [tool, setTool] = useState('run_shell');
  const [input, setInput] = useState('');
  const [agent, setAgent] = useState('');
  const [mode, setMode] = useState('');
  const [told, setTold] = useState<Verdict | null>(null);
  const [error, setError] = useState('');
  useEffect(() => {
    get<{ members: Member[] }>('/team').then((answer) => setMembers(answer.members), (failure) => setError(explain(failure)));
  }, []);
  const example = TOOLS.find(([name]) => name === tool)?.[2] ?? '';
  const ask = async () => {
    setError('');
    try {
      setTold(await post<Verdict>('/permissions/why', { tool, input: input.trim(), ...(agent && { agent }), ...(mode && { mode }) }));
    } catch (failure) {
      setTold(null);
      setError(explain(failure));
    }
  };
  // An answer belongs to the question that it was given for.
  const change = (set: (value: string) => void) => (event: { currentTarget: { value: string } }) => {
    set(event.currentTarget.value);
    setTold(null);
  };
  return (
    <section class="card settings-card" aria-labelledby="permission-test">
      <h2 id="permission-test">{t('permission.title')}</h2>
      <p class="muted small">{t('permission.about')}</p>
      <form
        class="edit-form bare"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <div class="form-row">
          <label>
            {t('permission.tool')}
            <select value={tool} onChange={change(setTool)}>
              {TOOLS.map(([name, key]) => (
                <option key={name} value={name}>
                  {t(key)}
                </option>
              ))}
            </select>
          </label>
          <label>
            {t('permission.agent')}
            <select value={agent} onChange={change(setAgent)}>
              <option value="">{t('permission.any_agent')}</option>
              {members.map((member) => (
                <option key={member.name} value={member.name}>
                  {member.name}
                </option>
              ))}
            </select>
          </label>
          <label>
            {t('permission.mode')}
            <select value={mode} onChange={change(setMode)}>
              <option value="">{t('permission.own_mode')}</option>
              {MODES.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </div>
        <label>
          {t('permission.input')}
          <input type="text" class="mono" value={input} placeholder={example} autocomplete="off" spellcheck={false} onInput={change(setInput)} />
        </label>
        <div class="row end">
          <Button type="submit" look="primary" disabled={!input.trim()}>
            {t('permission.ask')}
          </Button>
        </div>
      </form>
      <div role="status">{told && <Told told={told} agent={agent} />}</div>
      {error && (
        <p class="error-text" role="alert">
          {error}
        </p>
      )}
    </section>
  );
}

function Told({ told, agent }: { told: Verdict; agent: string }) {
  const { origin } = told;
  return (
    <dl class="facts verdict">
      <dt>{t('permission.verdict')}</dt>
      <dd>
        <Badge state={STATES[told.verdict]} text={word('verdict', told.verdict)} /> <code>{told.target}</code>
      </dd>
      <dt>{t('permission.rule')}</dt>
      <dd>{language.value === 'zh' ? told.rule_zh : told.rule}</dd>
      {origin && (
        <>
          <dt>{t('permission.origin')}</dt>
          <dd>
            <code>{origin.line ? `${origin.file}:${origin.line}` : origin.file}</code> <span class="tag">{word('rule_scope', origin.scope)}</span>
          </dd>
        </>
      )}
      {told.hint && (
        <>
          <dt>{t('permission.hint')}</dt>
          <dd>{told.hint}</dd>
        </>
      )}
      {told.verdict === 'ask' && told.remember.length > 0 && (
        <>
          <dt>{t('permission.remember')}</dt>
          <dd>
            {told.remember.map((rule) => (
              <code key={rule}>{rule}</code>
            ))}
          </dd>
        </>
      )}
      <dt>{t('permission.mode')}</dt>
      <dd>
        <code>{told.mode}</code>
      </dd>
      {!told.offered && (
        <>
          <dt>{t('permission.note')}</dt>
          <dd>{t('permission.not_offered', { agent, tool: told.tool })}</dd>
        </>
      )}
    </dl>
  );
}
