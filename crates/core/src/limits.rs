//! Every limit in one place, each with its reason.

/// Longest name of a tenant, worker, recipe, lock, in bytes. Fits a file name and a table column.
pub const NAME_BYTES_MAX: usize = 128;
/// Longest name of an output, with its folders, in bytes.
pub const OUTPUT_NAME_BYTES_MAX: usize = 512;
/// Longest part of an output's name between slashes, in bytes: no file system takes a longer file
/// name.
pub const FILE_NAME_BYTES_MAX: usize = 255;
/// Longest name of a fenced object, in bytes: what S3 takes, less room for a prefix.
pub const OBJECT_KEY_BYTES_MAX: usize = 900;
/// Longest `request_id` and session id, in bytes. A UUID has 36.
pub const REQUEST_ID_BYTES_MAX: usize = 128;
/// Shortest ttl, in ms. Below it the heartbeat would cost more than the lease can save.
pub const TTL_MS_MIN: u64 = 500;
/// Longest ttl, in ms: one day. Ten years would be a lock without expiry under another name.
pub const TTL_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The ttl when none is asked for, in ms.
pub const TTL_MS_DEFAULT: u64 = 30_000;
/// Longest wait of one long poll, in ms.
pub const WAIT_MS_MAX: u64 = 60_000;
/// Most jobs that one claim may take.
pub const CLAIM_JOBS_MAX: u32 = 1_000;
/// Most items in one request (submissions, leases of a heartbeat).
pub const BATCH_ITEMS_MAX: usize = 10_000;
/// Most files in one manifest: an hour of two-second HLS segments in five renditions is 9,000.
pub const MANIFEST_OUTPUTS_MAX: usize = 20_000;
/// Longest text parameter, in bytes.
pub const PARAMETER_BYTES_MAX: usize = 4_096;
/// Longest failure message kept, in bytes; the end of a tool's log is what tells.
pub const MESSAGE_BYTES_MAX: usize = 8_192;
/// How long a lock's grant is remembered after its end, in ms: two days, twice the longest ttl.
/// After that its pair is unknown, which every effect refuses as well.
pub const LOCK_GRANT_KEPT_MS: u64 = 2 * TTL_MS_MAX;
/// Longest wait for a lock in one request, in ms: an hour. Whoever would wait longer asks again.
pub const LOCK_WAIT_MS_MAX: u64 = 60 * 60 * 1000;
