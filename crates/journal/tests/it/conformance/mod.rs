//! What every engine must do: one list, run for each.

mod life;
mod log;
mod rows;

use max_team_journal::Journal;

use self::life::*;
use self::log::*;
use self::rows::*;
use crate::make::on_disk;

macro_rules! suite {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let (_dir, journal) = super::on_disk();
                super::$name(journal).await;
            })+
        }
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(super::Journal::memory()).await;
            })+
        }
    };
}

suite!(
    entries_are_chained_and_read_back,
    entries_are_found_by_their_event,
    a_lost_race_is_a_conflict_and_leaves_nothing,
    streams_of_one_commit_move_together,
    large_payloads_are_stored_once,
    blobs_are_kept_by_their_hash,
    messages_wait_until_they_are_taken,
    a_message_is_sent_once,
    unknown_messages_cannot_be_taken,
    timers_fire_once,
    timers_come_in_order,
    parts_leave_the_outbox_by_legal_moves_only,
    projections_are_listed_newest_first,
    folds_start_from_a_snapshot_of_their_version,
    claims_are_exclusive_and_fenced,
    a_dead_owner_is_succeeded,
    the_living_owner_can_be_asked_for,
    rows_are_rebuilt_from_the_log_alone,
    seals_come_by_themselves_and_on_close,
    erased_payloads_leave_the_chain_whole,
    entries_written_during_an_erase_are_kept,
    streams_of_the_journal_are_its_own,
    payloads_have_a_bound,
    a_watch_catches_up_and_follows,
    watches_see_other_handles,
    a_closed_journal_refuses_and_can_be_opened_again,
    the_log_is_exported_as_lines,
    racing_writers_all_get_in_once,
    threads_may_wait_for_a_commit,
    nothing_is_a_commit_too,
);
