// Browser notifications: asked for by a button, shown only while the page is in the background.
import { signal } from '@preact/signals';
import { t } from './i18n';
import { cut, plain } from './text';

const can = typeof Notification !== 'undefined';
export const notifications = signal<NotificationPermission | 'unsupported'>(can ? Notification.permission : 'unsupported');

export async function askForNotifications() {
  if (can) notifications.value = await Notification.requestPermission();
}

export function notifyWaiting(who: string, what: string, session: string) {
  if (!can || Notification.permission !== 'granted' || document.visibilityState === 'visible') return;
  try {
    const note = new Notification(t('notify.title', { who: who || t('plan.word') }), { body: cut(plain(what), 160), tag: `max-team-${session}`, icon: '/icon.svg' });
    note.onclick = () => {
      window.focus();
      location.hash = '#/inbox';
      note.close();
    };
  } catch {
    // Browsers on phones show notifications of service workers only.
  }
}
