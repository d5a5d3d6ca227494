import { t } from '../lib/i18n';
import { askForNotifications, notifications } from '../lib/notify';
import { Button } from './basics';

export function NotifyButton() {
  if (notifications.value !== 'default') return null;
  return (
    <Button icon="bell" small onClick={() => void askForNotifications()}>
      {t('notify.ask')}
    </Button>
  );
}
