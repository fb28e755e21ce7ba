//! Suites that every backend must pass: a backend's own test is a bench and one macro call.

pub mod blobs;
mod blobs_races;

/// Makes a test of every named case of a suite, each on a fresh bench.
#[macro_export]
macro_rules! conformance_cases {
    ($bench:expr, $suite:path, [$($case:ident),* $(,)?]) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $case() {
                use $suite as suite;
                let bench = $bench.await;
                suite::$case(&bench).await;
            }
        )*
    };
}

/// The tests of a [`Blobs`](crate::Blobs): `blob_conformance!(Bench::new())`.
#[macro_export]
macro_rules! blob_conformance {
    ($bench:expr) => {
        $crate::conformance_cases!(
            $bench,
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
