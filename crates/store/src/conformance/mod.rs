//! One suite for every store: what the contract of [`Store`] promises, behaviour by behaviour.
//!
//! A store's test hands [`exercise`] a way to make an empty one on a given clock. Each behaviour
//! gets a store of its own.

pub mod bench;
pub mod blobs;
pub mod cancel;
pub mod claim;
pub mod fencing;
pub mod finish;
pub mod lease;
pub mod listing;
pub mod locks;
pub mod objects;
pub mod publications;
pub mod retry;
pub mod submit;

pub use bench::{Bench, ManualClock};

use std::sync::Arc;

use palisade_core::clock::Clock;

use crate::Store;

macro_rules! behaviours {
    ($make:ident: $($theme:ident: $($behaviour:ident),* $(,)?;)*) => {$($(
        {
            let name = concat!(stringify!($theme), "::", stringify!($behaviour));
            let bench = Arc::new(Bench::new(name, &$make));
            $theme::$behaviour(&bench).await;
        }
    )*)*};
}

/// Runs every behaviour on an empty store of its own. Panics at the first that fails, naming it.
pub async fn exercise<S: Store + 'static>(make: impl Fn(Arc<dyn Clock>) -> S) {
    wishes(&make).await;
    attempts(&make).await;
    rest(&make).await;
    effects(&make).await;
}

async fn wishes<S: Store + 'static>(make: impl Fn(Arc<dyn Clock>) -> S) {
    behaviours! { make:
        submit:
            a_wish_makes_a_queued_job,
            the_same_wish_joins_the_live_job,
            ten_wishes_at_once_make_one_job,
            a_complete_job_answers_from_the_cache,
            a_fresh_wish_renders_again,
            a_job_that_is_over_is_not_joined,
            another_tenant_gets_a_job_of_its_own,
            a_submit_asked_again_gets_its_first_answer,
            a_submit_twice_in_one_call_is_done_once,
            a_request_id_of_another_wish_is_refused,
            a_wish_whose_input_is_missing_is_refused,
            a_number_too_large_is_refused;
        cancel:
            one_of_two_withdrawn_leaves_the_job,
            all_withdrawn_cancels_the_job,
            a_cancel_asked_again_does_nothing_more,
            a_second_cancel_withdraws_nothing,
            a_complete_job_stays_complete,
            an_unknown_job_or_submission_is_told;
        retry:
            failures_back_off,
            failures_use_up_their_budget,
            a_final_failure_ends_the_job,
            a_claim_gives_up_what_was_lost_repeatedly,
            a_tick_gives_up_what_was_lost_repeatedly,
            losses_and_failures_are_counted_apart,
            a_retry_gives_a_failed_job_another_try,
            a_retry_asked_again_does_nothing_more,
            a_retry_is_refused_when_a_newer_job_has_the_key,
            a_retry_of_a_cancelled_job_revives_one_submission,
            a_retry_of_a_live_or_complete_job_is_refused;
    }
}

async fn attempts<S: Store + 'static>(make: impl Fn(Arc<dyn Clock>) -> S) {
    behaviours! { make:
        claim:
            two_claimers_share_one_job_by_one_getting_it,
            fifty_claimers_at_once_get_each_job_once,
            a_claim_takes_as_many_as_it_asks_for,
            claims_go_by_priority_then_by_age,
            a_job_is_not_granted_before_its_time,
            a_worker_gets_only_what_it_can_run,
            a_claim_asked_again_returns_its_grants,
            a_claim_asked_again_tells_what_was_lost,
            a_claim_twice_in_one_call_is_done_once,
            another_sessions_claim_is_its_own,
            an_empty_claim_is_told_when_to_look_again;
        lease:
            a_renewed_lease_is_not_taken_over,
            a_lapsed_lease_is_taken_over,
            a_late_heartbeat_of_one_not_replaced_renews,
            a_heartbeat_after_the_loss_is_told,
            a_heartbeat_after_a_cancel_is_told,
            a_pair_never_granted_is_unknown_to_a_heartbeat,
            a_heartbeat_hands_back_a_grant_it_does_not_know,
            a_heartbeat_leaves_alone_what_it_cannot_know,
            an_overtaken_heartbeat_hands_nothing_back,
            a_suspected_session_loses_what_it_did_not_renew,
            a_suspicion_ends_with_a_renewal,
            measured_pauses_are_in_the_journal;
        fencing:
            a_zombies_completion_is_refused_and_leaves_no_trace,
            a_zombies_other_verbs_are_refused,
            a_late_completion_of_one_not_replaced_stands,
            a_pair_that_does_not_belong_is_refused,
            a_backup_runs_beside_the_first_and_the_loser_is_told,
            a_backup_goes_on_when_the_first_fails,
            a_completion_that_was_answered_stays,
            numbers_only_rise;
    }
}

async fn rest<S: Store + 'static>(make: impl Fn(Arc<dyn Clock>) -> S) {
    behaviours! { make:
        finish:
            a_completion_is_recorded,
            a_complete_asked_again_gets_the_recorded_answer,
            a_missing_blob_leaves_the_attempt_open,
            an_empty_manifest_is_refused,
            a_fail_asked_again_gets_the_same_answer,
            a_release_asked_again_gets_the_same_answer;
        blobs:
            a_blob_is_present_once_its_upload_ended,
            uploaders_of_the_same_bytes_share_a_place,
            an_upload_to_another_generation_starts_again,
            only_an_open_attempt_can_pin;
        listing:
            jobs_are_listed_newest_first_by_pages,
            jobs_are_listed_and_counted_by_state,
            leases_are_listed_as_last_renewed,
            the_journal_is_read_by_pages_and_by_job,
            listeners_hear_the_journal,
            a_reader_sees_what_was_answered;
    }
}

async fn effects<S: Store + 'static>(make: impl Fn(Arc<dyn Clock>) -> S) {
    behaviours! { make:
        locks:
            a_held_lock_is_not_granted_twice,
            waiters_are_served_in_the_order_in_which_they_came,
            thirty_two_waiters_are_handed_the_lock_in_order,
            a_lost_reply_asked_again_gets_the_same_pair,
            a_waiter_that_left_gets_nothing,
            a_grant_to_a_waiter_that_left_meanwhile_is_ended,
            a_lapsed_lock_goes_to_who_waits_by_time_alone,
            a_lapsed_waiter_gets_nothing,
            a_strangers_release_is_refused_and_leaves_no_trace,
            a_renewal_after_expiry_holds_while_nobody_took_it,
            a_release_is_answered_again_and_raises_the_fence,
            a_pair_of_another_lock_is_unknown,
            locks_and_jobs_draw_from_one_counter,
            locks_are_listed_by_prefix_and_pages,
            the_journal_tells_of_locks_but_not_their_lease_ids;
        objects:
            a_holder_that_was_replaced_is_refused_before_the_new_one_wrote,
            a_holder_that_was_replaced_is_refused_after_the_new_one_wrote,
            a_job_that_was_taken_over_fences_its_first_worker,
            a_stranger_with_a_holders_number_is_refused,
            a_token_from_the_future_is_refused_and_locks_nothing,
            a_deleted_object_keeps_its_fence,
            a_put_repeated_is_answered_again,
            a_holders_reordered_writes_are_refused,
            conditions_are_further_conditions,
            a_raise_refuses_older_holders_and_keeps_the_content,
            a_put_of_bytes_that_are_missing_is_refused,
            sixty_four_writers_leave_the_highest,
            objects_are_listed_by_prefix_and_pages;
        publications:
            a_commit_is_published_by_whoever_comes_first,
            a_tick_carries_out_what_is_due,
            publications_are_carried_out_once_however_many_try,
            joined_and_cached_submissions_have_names_of_their_own,
            a_late_retry_never_overwrites_a_newer_submission,
            what_was_withdrawn_after_the_commit_is_not_published,
            a_holders_name_is_not_published_over,
            a_published_name_takes_no_holders_write,
            a_folder_is_never_half_old_and_half_new,
            a_key_is_read_as_itself_before_it_is_part_of_a_folder,
            a_name_belongs_to_the_request;
    }
}
