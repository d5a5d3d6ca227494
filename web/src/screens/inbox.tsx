import { t, word } from '../lib/i18n';
import { author, clock } from '../lib/format';
import { answeredHere } from '../lib/answered';
import { inbox, mayDecide } from '../lib/store';
import { Empty } from '../ui/basics';
import { NotifyButton } from '../ui/notify-button';
import { PendingCard } from '../ui/pending';
import { Icon } from '../ui/icons';

export function InboxScreen() {
  const waiting = inbox.value;
  const answered = answeredHere.value;
  return (
    <div class="page narrow">
      <header class="page-head">
        <div class="grow">
          <h1>{t('nav.inbox')}</h1>
          <p class="muted">{t('inbox.about')}</p>
        </div>
        <NotifyButton />
      </header>
      {!mayDecide.value && (
        <p class="quiet-line">
          <Icon name="lock" size={16} /> {t('inbox.viewer')}
        </p>
      )}
      {waiting.length === 0 ? <Empty icon="check" title={t('inbox.empty')} /> : null}
      <div class="stack" aria-live="polite">
        {waiting.map((pending) => (
          <PendingCard key={pending.row.question} pending={pending} where />
        ))}
      </div>
      {answered.length > 0 && (
        <section aria-labelledby="answered">
          <h2 id="answered">{t('inbox.answered')}</h2>
          <ul class="rows card flush">
            {answered.map((one) => (
              <li key={one.question} class="row-link">
                <Icon name={one.said === 'no' || one.said === 'rejected' ? 'cross' : 'check'} size={16} />
                <span class="grow ellipsis">{one.words}</span>
                <span class="small">{word('said', one.said)}</span>
                <span class="muted small nowrap">
                  {author(one.by)} · {clock(one.at)}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}
