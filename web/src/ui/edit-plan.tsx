// Changes a plan before it is approved.
import { useEffect, useState } from 'preact/hooks';
import { get } from '../lib/api';
import { t } from '../lib/i18n';
import type { Edit, Member, PlanTask, PlanView } from '../lib/types';
import { Button, Dialog } from './basics';
import { Icon } from './icons';
import { decide } from './pending';

interface Fields {
  id: string;
  title: string;
  description: string;
  agent: string;
  needs: string[];
  verify: string;
  model: string;
  usd: string;
  skip: boolean;
  removed: boolean;
}

function fieldsOf(task: PlanTask): Fields {
  return {
    id: task.id,
    title: task.title,
    description: task.description,
    agent: task.agent_name,
    needs: [...task.depends_on],
    verify: (task.verify ?? []).join('\n'),
    model: task.model ?? '',
    usd: task.budget?.nano ? String(task.budget.nano / 1e9) : '',
    skip: task.skip ?? false,
    removed: false,
  };
}

/** The edits that lead from a plan to the fields of the form. */
export function editsOf(tasks: PlanTask[], fields: Fields[]): Edit[] {
  const edits: Edit[] = [];
  for (const now of fields) {
    const task = tasks.find((one) => one.id === now.id);
    if (!task) continue;
    const before = fieldsOf(task);
    const id = task.id;
    if (now.removed) {
      edits.push({ remove: { task: id } });
      continue;
    }
    if (now.title !== before.title) edits.push({ retitle: { task: id, text: now.title } });
    if (now.description !== before.description) edits.push({ describe: { task: id, text: now.description } });
    if (now.agent !== before.agent) edits.push({ assign: { task: id, agent: now.agent } });
    const needs = now.needs.filter((need) => !fields.find((one) => one.id === need)?.removed);
    if (needs.join('\n') !== before.needs.filter((need) => !fields.find((one) => one.id === need)?.removed).join('\n')) edits.push({ needs: { task: id, needs } });
    const lines = now.verify.split('\n').map((line) => line.trim()).filter(Boolean);
    if (lines.join('\n') !== (task.verify ?? []).join('\n')) edits.push({ verify: { task: id, verify: lines } });
    if (now.model !== before.model) edits.push({ model: { task: id, model: now.model || null } });
    if (now.usd !== before.usd) {
      const usd = Number.parseFloat(now.usd);
      const { nano: _, ...rest } = task.budget ?? {};
      edits.push({ budget: { task: id, budget: Number.isFinite(usd) && usd > 0 ? { ...rest, nano: Math.round(usd * 1e9) } : rest } });
    }
    if (now.skip !== before.skip) edits.push({ skip: { task: id, skip: now.skip } });
  }
  // Removing comes last: other edits may name a task that goes.
  return [...edits.filter((edit) => !('remove' in edit)), ...edits.filter((edit) => 'remove' in edit)];
}

export function EditPlan({ view, question, onClose }: { view: PlanView; question: string; onClose: () => void }) {
  const [fields, setFields] = useState(() => view.tasks.map(fieldsOf));
  const [open, setOpen] = useState(view.tasks[0]?.id ?? '');
  const [members, setMembers] = useState<Member[]>([]);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    get<{ members: Member[] }>('/team').then((answer) => setMembers(answer.members.filter((member) => !member.lead && !member.expert)), () => {});
  }, []);
  const edits = editsOf(view.tasks, fields);
  const change = (id: string, part: Partial<Fields>) => setFields(fields.map((one) => (one.id === id ? { ...one, ...part } : one)));
  const save = async () => {
    setBusy(true);
    const done = await decide(question, { edit: edits }, t('plan.edited_done'));
    setBusy(false);
    if (done) onClose();
  };
  const names = [...new Set([...members.map((member) => member.name), ...fields.map((one) => one.agent)])];
  return (
    <Dialog title={t('edit.title')} onClose={onClose} wide>
      <p class="muted">{view.goal}</p>
      <div class="edit-tasks">
        {fields.map((one) => (
          <section key={one.id} class={one.removed ? 'edit-task removed' : 'edit-task'}>
            <button type="button" class="edit-head" aria-expanded={open === one.id} onClick={() => setOpen(open === one.id ? '' : one.id)}>
              <Icon name="chevron" size={14} />
              <code>{one.id}</code>
              <span class="grow ellipsis">{one.title || one.description}</span>
              <span class="muted small">{one.removed ? t('edit.removed') : one.skip ? t('task.skipped') : one.agent}</span>
            </button>
            {open === one.id && (
              <TaskForm one={one} all={fields} names={names} onChange={(part) => change(one.id, part)} />
            )}
          </section>
        ))}
      </div>
      <div class="row end sticky-foot">
        <span class="grow muted small">{edits.length > 0 ? t('edit.count', { count: edits.length }) : t('edit.none')}</span>
        <Button onClick={onClose}>{t('do.cancel')}</Button>
        <Button look="primary" disabled={edits.length === 0 || busy} onClick={() => void save()}>
          {t('edit.save')}
        </Button>
      </div>
    </Dialog>
  );
}

function TaskForm({ one, all, names, onChange }: { one: Fields; all: Fields[]; names: string[]; onChange: (part: Partial<Fields>) => void }) {
  return (
    <div class="edit-form">
      <label>
        {t('edit.task_title')}
        <input type="text" value={one.title} onInput={(event) => onChange({ title: event.currentTarget.value })} />
      </label>
      <label>
        {t('edit.description')}
        <textarea rows={5} value={one.description} onInput={(event) => onChange({ description: event.currentTarget.value })} />
      </label>
      <div class="form-row">
        <label>
          {t('edit.owner')}
          <select value={one.agent} onChange={(event) => onChange({ agent: event.currentTarget.value })}>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t('edit.budget')}
          <input type="text" inputMode="decimal" placeholder={t('edit.no_budget')} value={one.usd} onInput={(event) => onChange({ usd: event.currentTarget.value })} />
        </label>
        <label>
          {t('edit.model')}
          <input type="text" placeholder={t('edit.own_model')} value={one.model} onInput={(event) => onChange({ model: event.currentTarget.value })} />
        </label>
      </div>
      <fieldset>
        <legend>{t('edit.needs')}</legend>
        <div class="chips">
          {all.filter((other) => other.id !== one.id && !other.removed).map((other) => {
            const on = one.needs.includes(other.id);
            return (
              <label key={other.id} class={on ? 'chip on' : 'chip'}>
                <input type="checkbox" checked={on} onChange={() => onChange({ needs: on ? one.needs.filter((need) => need !== other.id) : [...one.needs, other.id] })} />
                {other.id}
              </label>
            );
          })}
        </div>
      </fieldset>
      <label>
        {t('edit.verify')}
        <textarea rows={2} class="mono" value={one.verify} onInput={(event) => onChange({ verify: event.currentTarget.value })} />
      </label>
      <div class="row">
        <label class="check">
          <input type="checkbox" checked={one.skip} onChange={() => onChange({ skip: !one.skip })} /> {t('edit.skip')}
        </label>
        <span class="grow" />
        <Button small look={one.removed ? 'plain' : 'danger'} onClick={() => onChange({ removed: !one.removed })}>
          {t(one.removed ? 'edit.restore' : 'edit.remove')}
        </Button>
      </div>
    </div>
  );
}
