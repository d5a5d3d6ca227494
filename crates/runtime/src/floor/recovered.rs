//! What a session had open when the process before this one left it: counted once, for whoever opens it again.

use max_team_core::id::PlanId;
use max_team_core::message::Kind;
use max_team_core::turn::Turn;

use super::{Floor, fold_plan};
use crate::error::RuntimeError;
use crate::handle::Recovered;
use crate::post;
use crate::rows::{self, InboxRow};

impl Floor {
    /// Counts what is open, before anybody goes on with it.
    pub(crate) fn recovered(&self, lead: &Turn, plans: &[PlanId]) -> Result<Recovered, RuntimeError> {
        let journal = &self.shared.journal;
        let mut found =
            Recovered { agents: usize::from(lead.is_busy()), unknown: lead.unknown().len(), ..Recovered::default() };
        for (agent, _) in self.working()? {
            let (turn, _) = self.shared.fold_agent(agent)?;
            found.agents += 1;
            found.unknown += turn.unknown().len();
        }
        for plan in plans {
            found.tasks += fold_plan(&self.shared, *plan)?.0.active().count();
        }
        let is_mine = |address: &str| post::session_at(journal, address) == Some(self.session);
        for address in journal.mailboxes()? {
            if is_mine(&address) {
                // That files were put back was left open by nobody.
                let mail = journal.pending_mail(&address)?;
                found.mail += mail.iter().filter(|letter| letter.kind != Kind::FilesRewound).count();
            }
        }
        let asked = rows::rows::<InboxRow>(journal, rows::INBOX)?;
        found.approvals = asked.iter().filter(|(_, row)| is_mine(&row.address)).count();
        Ok(found)
    }
}
