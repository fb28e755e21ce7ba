//! Files as real people have them: each comes to a right export, or to a plain refusal.

mod support;

use palisade_core::job::FailureKind;
use support::{
    clips::ffprobe,
    exports::{Export, export},
};

/// The fastest that the recipes go, since the tests look at other things than size.
const QUICK: [(&str, &str); 1] = [("preset", "ultrafast")];

fn value(text: &str, key: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("{key} is not in {text}")).to_owned()
}

/// Checks an MP4 by ffprobe's word, and answers the export for further looks.
async fn becomes_mp4(name: &str, recipe: &str, size: (i64, i64), seconds: f64) -> Export {
    let export = export(name, recipe, &QUICK).await;
    let file = export.output("video.mp4");
    let video = ffprobe(
        &file,
        "-select_streams v -show_entries \
         stream=width,height,sample_aspect_ratio,pix_fmt,codec_name:stream_side_data=rotation",
    );
    let side = |key: &str| value(&video, key).parse::<i64>().expect("a number");
    let (width, height) = (side("width"), side("height"));
    assert!((width - size.0).abs() <= 2 && (height - size.1).abs() <= 2, "{width}x{height}");
    assert_eq!((width % 2, height % 2), (0, 0));
    assert_eq!(value(&video, "sample_aspect_ratio"), "1:1");
    assert_eq!(value(&video, "pix_fmt"), "yuv420p");
    assert_eq!(value(&video, "codec_name"), "h264");
    assert!(!video.contains("rotation"), "a rotation must be carried out, not passed on");
    let duration = value(&ffprobe(&file, "-show_entries format=duration"), "duration");
    let duration: f64 = duration.parse().expect("a number");
    assert!((duration - seconds).abs() <= 0.5, "{duration}");
    export
}

async fn is_refused(name: &str, recipe: &str, words: &[&str]) {
    let export = export(name, recipe, &[]).await;
    let failure = export.failure();
    let message = failure.message.to_lowercase();
    assert!(words.iter().any(|word| message.contains(word)), "{message}");
    assert_eq!(failure.kind, FailureKind::Final, "no retry could help: {message}");
}

#[tokio::test]
async fn an_ordinary_clip_is_exported_and_what_was_checked_is_kept() {
    let export = becomes_mp4("ordinary.mp4", "h264-720p", (640, 360), 4.0).await;
    let rendered = export.outcome.expect("complete");
    let checks: Vec<&str> = rendered.checks.iter().map(|check| check.name.as_str()).collect();
    let parts = [
        "size",
        "streams",
        "duration",
        "shown size",
        "pixel shape",
        "pixel format",
        "video codec",
        "audio codec",
    ];
    assert_eq!(checks, parts.map(|part| format!("video.mp4: {part}")));
    assert_eq!(rendered.outputs[0].facts["width"], 640);
    // Sound comes in frames of 21 ms, of which the last is padded.
    let duration_ms = rendered.outputs[0].facts["duration_ms"].as_i64().expect("a number");
    assert!((4_000..4_050).contains(&duration_ms), "{duration_ms}");
    assert!(rendered.provenance.toolchain.starts_with("ffmpeg version "));
    assert_eq!(rendered.provenance.commands.len(), 1);
}

#[tokio::test]
async fn odd_sides_become_even_and_full_colour_becomes_what_players_take() {
    becomes_mp4("odd-sides.mkv", "h264-720p", (428, 242), 4.0).await;
}

#[tokio::test]
async fn a_telephones_rotation_is_carried_out() {
    becomes_mp4("rotated-phone.mp4", "h264-720p", (360, 640), 4.0).await;
    becomes_mp4("upside-down.mp4", "h264-720p", (640, 360), 4.0).await;
}

#[tokio::test]
async fn a_recording_without_duration_is_exported_and_no_percentage_made_up() {
    let export = becomes_mp4("no-duration.webm", "h264-720p", (640, 360), 4.0).await;
    assert!(export.progress.iter().all(|progress| progress.percent.is_none()));
    assert!(export.progress.iter().any(|progress| progress.done_ms.is_some()));
    let checks = &export.outcome.as_ref().expect("complete").checks;
    let duration = checks.iter().find(|check| check.name.ends_with("duration")).expect("checked");
    assert!(duration.expected.contains("within 0.50 s"), "measured, and held to: {duration:?}");
}

#[tokio::test]
async fn a_variable_frame_rate_keeps_its_length() {
    becomes_mp4("variable-rate.mkv", "h264-720p", (320, 180), 6.0).await;
}

#[tokio::test]
async fn a_clock_of_milliseconds_is_not_taken_for_a_frame_rate() {
    let export = becomes_mp4("clock-rate.webm", "h264-720p", (320, 180), 3.0).await;
    let text = ffprobe(&export.output("video.mp4"), "-show_entries stream=avg_frame_rate");
    assert_eq!(value(&text, "avg_frame_rate"), "60/1");
}

#[tokio::test]
async fn the_last_picture_is_shown_for_as_long_as_it_was_to_be() {
    becomes_mp4("last-long.mp4", "h264-720p", (320, 180), 7.0).await;
}

#[tokio::test]
async fn a_picture_that_changes_its_size_midway_is_exported() {
    becomes_mp4("resized.webm", "h264-720p", (640, 360), 4.0).await;
    assert!(export("resized.webm", "gif-preview", &[]).await.outcome.is_ok());
}

#[tokio::test]
async fn sound_that_begins_late_or_goes_on_longer_keeps_its_place() {
    becomes_mp4("late-sound.mkv", "h264-720p", (320, 180), 5.0).await;
    becomes_mp4("long-sound.mp4", "h264-720p", (320, 180), 6.0).await;
    let export = export("long-sound.mp4", "hls", &QUICK).await;
    let playlist = std::fs::read_to_string(export.output("index.m3u8")).expect("readable");
    let lengths = playlist.lines().filter_map(|line| line.strip_prefix("#EXTINF:"));
    let lengths = lengths.map(|text| text.trim_end_matches(',').parse::<f64>().expect("a number"));
    let whole: f64 = lengths.sum();
    assert!((whole - 6.0).abs() <= 0.5, "a playlist tells its length by its pictures: {whole}");
}

#[tokio::test]
async fn a_length_that_is_only_a_guess_is_no_promise() {
    let export = export("no-length.mp3", "audio-aac", &[]).await;
    let text = ffprobe(&export.output("audio.m4a"), "-show_entries format=duration");
    let duration: f64 = value(&text, "duration").parse().expect("a number");
    assert!((duration - 7.0).abs() <= 0.5);
    assert!(export.progress.iter().all(|progress| progress.percent.is_none()));
}

#[tokio::test]
async fn a_silent_clip_is_exported_but_has_no_sound_to_extract() {
    becomes_mp4("silent.mp4", "h264-720p", (320, 180), 3.0).await;
    is_refused("silent.mp4", "audio-aac", &["audio"]).await;
}

#[tokio::test]
async fn a_cover_picture_is_no_video() {
    let export = export("song-with-cover.mp3", "audio-aac", &[]).await;
    let text =
        ffprobe(&export.output("audio.m4a"), "-show_entries stream=codec_name:format=duration");
    assert_eq!(value(&text, "codec_name"), "aac");
    let duration: f64 = value(&text, "duration").parse().expect("a number");
    assert!((duration - 5.0).abs() <= 0.5);
    is_refused("song-with-cover.mp3", "h264-720p", &["video"]).await;
    becomes_mp4("cover-first.mp4", "h264-720p", (640, 360), 4.0).await;
}

#[tokio::test]
async fn ten_bits_and_full_range_become_what_players_take() {
    becomes_mp4("ten-bit.mkv", "h264-720p", (640, 360), 3.0).await;
    becomes_mp4("full-range.avi", "h264-720p", (320, 180), 3.0).await;
}

#[tokio::test]
async fn pixels_that_are_not_square_become_square() {
    becomes_mp4("wide-pixels.mp4", "h264-720p", (1024, 576), 3.0).await;
    becomes_mp4("absurd-pixels.mp4", "h264-720p", (320, 180), 3.0).await;
}

#[tokio::test]
async fn six_channels_broadcast_times_and_many_streams_are_exported() {
    becomes_mp4("surround.mp4", "h264-720p", (320, 180), 3.0).await;
    becomes_mp4("late-start.ts", "h264-720p", (640, 360), 4.0).await;
    becomes_mp4("many-streams.mkv", "h264-720p", (640, 360), 4.0).await;
}

#[tokio::test]
async fn a_single_frame_is_a_clip_and_a_thumbnail() {
    becomes_mp4("one-frame.mp4", "h264-720p", (320, 180), 0.04).await;
    let export = export("one-frame.mp4", "thumbnail", &[]).await;
    let text = ffprobe(&export.output("thumbnail.jpg"), "-show_entries stream=width,codec_name");
    assert_eq!(
        (value(&text, "width").as_str(), value(&text, "codec_name").as_str()),
        ("320", "mjpeg")
    );
}

#[tokio::test]
async fn the_shorter_side_becomes_at_most_what_the_recipe_says() {
    becomes_mp4("large.mp4", "h264-720p", (720, 1280), 1.0).await;
    becomes_mp4("large.mp4", "h264-1080p", (1080, 1920), 1.0).await;
}

#[tokio::test]
async fn files_that_were_cut_off_are_refused() {
    is_refused("cut-no-index.mp4", "h264-720p", &["moov", "index", "damaged", "invalid"]).await;
    is_refused("cut-half.mp4", "h264-720p", &["too short"]).await;
    is_refused("cut-half.mkv", "h264-720p", &["too short"]).await;
}

#[tokio::test]
async fn files_that_are_no_media_are_refused() {
    is_refused("empty.mp4", "h264-720p", &["empty"]).await;
    is_refused("text.mp4", "h264-720p", &["invalid"]).await;
}

#[tokio::test]
async fn playlists_under_an_innocent_name_are_refused() {
    is_refused("hostile-playlist.mp4", "h264-720p", &["is a playlist (hls)"]).await;
    is_refused("hostile-concat.mp4", "h264-720p", &["is a playlist (concat)"]).await;
}

#[tokio::test]
async fn a_file_name_never_reaches_a_command_line() {
    let names = [
        "-i.mp4",
        "a:b.mp4",
        "100%d.mp4",
        "it's \"so\".mp4",
        "two\nlines.mp4",
        "Größe ☃.mp4",
        "pipe:0.mp4",
    ];
    for name in names {
        let export = becomes_mp4(name, "h264-720p", (640, 360), 4.0).await;
        let commands = export.outcome.expect("complete").provenance.commands;
        let stem = name.trim_end_matches(".mp4");
        let has_name = |argument: &String| argument.contains(stem) && argument != "-i";
        assert!(!commands.iter().flatten().any(has_name), "{commands:?}");
    }
}
