//! Suites that every backend must pass: a backend's own test is a bench and one macro call.

pub mod blobs;
mod blobs_races;
pub mod cells;
pub mod faulty;
pub mod registers;
mod registers_doubt;

/// Makes something of every named case of a suite, each on a fresh bench: `each`, a test of its
/// own; `all`, one after the other, for benches whose server takes its time to start.
#[macro_export]
macro_rules! conformance_cases {
    (each => $bench:expr, $suite:path, [$($case:ident),* $(,)?]) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $case() {
                use $suite as suite;
                let bench = $bench.await;
                suite::$case(&bench).await;
            }
        )*
    };
    (all => $bench:expr, $suite:path, [$($case:ident),* $(,)?]) => {
        $({
            use $suite as suite;
            let bench = $bench.await;
            // Shown when a later assertion fails: it names the case.
            println!("{}", stringify!($case));
            Box::pin(suite::$case(&bench)).await;
        })*
    };
}

/// The tests of a [`Blobs`](crate::Blobs): `blob_conformance!(Bench::new())`, or all of them
/// inside one test: `blob_conformance!(all => Bench::new())`.
#[macro_export]
macro_rules! blob_conformance {
    ($bench:expr) => {
        $crate::blob_conformance!(each => $bench);
    };
    ($how:ident => $bench:expr) => {
        $crate::conformance_cases!(
            $how => $bench,
            $crate::conformance::blobs,
            [
                a_blob_is_read_back_as_it_was_written,
                a_range_brings_just_its_bytes,
                a_range_that_names_no_byte_is_refused,
                an_upload_of_unknown_digest_is_named_by_its_bytes,
                other_bytes_than_announced_leave_nothing,
                a_byte_too_many_leaves_nothing,
                a_dropped_upload_leaves_nothing,
                a_source_that_breaks_off_leaves_nothing,
                generations_of_one_digest_are_deleted_apart,
                what_is_not_there_is_said_to_be_not_there,
                all_that_is_stored_is_listed,
                a_damaged_byte_is_an_error_instead_of_the_last_chunk,
                a_blob_cut_short_is_an_error,
                a_placed_blob_is_not_replaced,
                fifty_writers_of_one_place_all_succeed,
                nothing_is_seen_of_a_blob_before_it_is_placed,
                racing_readers_see_nothing_or_the_whole,
            ]
        );
    };
}

/// The tests of a [`CompareAndSwap`](crate::register::CompareAndSwap), as cells and under a
/// register: `register_conformance!(fresh_bench())`, or `register_conformance!(all => …)`.
#[macro_export]
macro_rules! register_conformance {
    ($bench:expr) => {
        $crate::register_conformance!(each => $bench);
    };
    ($how:ident => $bench:expr) => {
        $crate::conformance_cases!(
            $how => $bench,
            $crate::conformance::cells,
            [
                what_was_swapped_in_is_read_back,
                cells_of_different_keys_are_apart,
                a_cell_that_is_there_is_not_created_again,
                a_swap_on_an_old_version_is_refused,
                a_swap_on_a_cell_that_is_not_there_is_refused,
                fifty_racing_creates_have_one_winner,
                fifty_racing_swaps_lose_none,
                the_probe_finds_no_lie,
            ]
        );
        $crate::conformance_cases!(
            $how => $bench,
            $crate::conformance::registers,
            [
                a_writer_paused_before_its_swap_is_refused,
                a_holder_that_only_raised_shuts_out_the_one_before,
                raising_comes_before_any_write,
                an_equal_number_from_another_author_is_refused,
                a_deleted_register_keeps_its_fence,
                the_writes_of_one_holder_keep_their_order,
                the_first_write_fixes_the_kind_of_number,
                a_number_from_the_future_is_undone_by_an_operators_reset,
                a_register_that_is_none_is_corrupt,
                a_lost_reply_does_not_refuse_its_own_author,
                a_lost_request_is_sent_again,
                a_swap_that_lands_late_changes_nothing,
                a_repeat_and_the_late_first_sending_are_one_write,
                an_outcome_stays_unknown_until_the_register_is_read_again,
                an_error_after_a_lost_reply_is_unknown_too,
                of_sixty_four_writers_the_highest_number_stands,
            ]
        );
    };
}
