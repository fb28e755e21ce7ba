//! One suite for every store: what the contract of [`Store`] promises, behaviour by behaviour.
//!
//! A store's test hands [`exercise`] a way to make an empty one on a given clock. Each behaviour
//! gets a store of its own.

pub mod bench;
pub mod blobs;
pub mod cancel;
pub mod claim;
pub mod collect;
pub mod fencing;
pub mod finish;
pub mod large;
pub mod lease;
pub mod listing;
pub mod lock_requests;
pub mod locks;
pub mod objects;
pub mod outbox;
pub mod publications;
pub mod retention;
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
    collection(&make).await;
    notifications(&make).await;
    many(&make).await;
}

async fn many<S: Store + 'static>(make: impl Fn(Arc<dyn Clock>) -> S) {
    behaviours! { make:
        large:
            a_job_that_many_wished_for_completes,
            a_job_that_many_wished_for_is_cancelled,
            a_job_that_many_wished_for_is_given_up_by_a_claim,
            a_claim_of_many_asked_again_returns_them_all,
            a_heartbeat_renews_many_and_hands_many_back,
            a_session_with_many_leases_is_suspected,
            many_lost_jobs_are_given_up_by_one_claim,
            many_lost_jobs_are_given_up_by_one_tick,
            many_publications_are_carried_out_at_once,
            a_job_of_many_files_is_kept_and_let_go,
            many_waiters_that_have_gone_are_passed_over_at_once,
            a_holder_writes_many_objects;
    }
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
            a_grant_that_was_heard_of_is_not_handed_back,
            a_grant_nobody_heard_of_is_handed_back_once,
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
        retention:
            old_entries_go_except_those_of_live_jobs,
            positions_go_on_when_all_is_forgotten,
            old_answers_are_forgotten;
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
        lock_requests:
            a_late_duplicate_of_a_request_takes_nothing,
            a_late_duplicate_is_told_that_its_grant_went_to_another,
            a_grant_nobody_heard_of_may_be_asked_for_again,
            a_call_that_leaves_late_takes_nothing_from_another,
            a_late_duplicate_that_leaves_ends_no_grant,
            a_duplicate_at_once_gets_the_same_grant,
            a_holder_that_acquires_again_does_not_revive_its_old_pair,
            an_equal_token_with_another_lease_id_changes_nothing,
            a_put_that_comes_after_a_newer_holders_delete_is_refused,
            a_delete_is_answered_again_and_its_holders_earlier_put_refused,
            an_ended_grant_is_remembered_and_then_forgotten,
            a_fence_outlives_all_that_is_forgotten,
            a_holders_name_inherits_nothing,
            sixty_four_writers_in_any_order_leave_the_highest;
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

async fn collection<S: Store + 'static>(make: impl Fn(Arc<dyn Clock>) -> S) {
    behaviours! { make:
        collect:
            what_nobody_keeps_is_condemned_after_the_grace,
            what_is_kept_is_never_condemned,
            what_is_kept_again_in_time_is_acquitted,
            an_orphan_reused_while_the_collector_paused_has_a_place_of_its_own,
            a_tombstone_stands_until_its_time_is_over,
            a_walk_in_stretches_finds_everything_once,
            jobs_past_their_time_let_go_of_what_they_kept,
            a_wish_answered_by_a_released_job_keeps_its_outputs_again,
            a_retry_of_a_released_job_needs_its_inputs;
    }
}

async fn notifications<S: Store + 'static>(make: impl Fn(Arc<dyn Clock>) -> S) {
    behaviours! { make:
        outbox:
            a_completion_is_told_to_each_submission_once,
            a_late_completion_adds_no_notification,
            a_cached_answer_is_told_at_once,
            failures_and_cancellations_are_told_in_their_order,
            a_job_given_up_is_told,
            an_endpoint_hears_what_it_asked_for_of_its_tenant,
            a_delivery_is_leased_to_one_and_settled_once,
            a_lapsed_delivery_is_made_again_the_same,
            what_is_later_of_a_job_waits_for_what_is_earlier,
            a_dead_letter_blocks_nobody_and_can_be_asked_for_again,
            a_dead_endpoint_does_not_hold_up_another,
            a_notification_that_kills_its_deliverers_is_given_up,
            endpoints_are_made_rotated_and_removed,
            notifications_are_listed_newest_first_by_pages,
            progress_is_told_before_the_end_and_never_after;
    }
}
