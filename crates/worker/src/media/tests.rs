use palisade_core::recipe::Template;

use super::*;

fn video(width: u32, height: u32, pixel_shape: (u32, u32), rotation: i32) -> VideoStream {
    VideoStream { width, height, pixel_shape, rotation, ..VideoStream::default() }
}

#[test]
fn a_picture_fits_by_its_shown_shorter_side_and_is_never_enlarged() {
    let fit = |width, height, shape, rotation| video(width, height, shape, rotation).fit(720);
    assert_eq!(fit(640, 360, (1, 1), 0), (640, 360));
    assert_eq!(fit(427, 241, (1, 1), 0), (428, 242));
    assert_eq!(fit(1920, 1080, (1, 1), 0), (1280, 720));
    assert_eq!(fit(1920, 1080, (1, 1), -90), (720, 1280));
    assert_eq!(fit(1920, 1080, (1, 1), 180), (1280, 720));
    assert_eq!(fit(720, 576, (64, 45), 0), (1024, 576));
    assert_eq!(fit(720, 576, (64, 45), 90), (576, 1024));
    assert_eq!(fit(1440, 1080, (4, 3), 0), (1280, 720));
    assert_eq!(fit(720, 480, (8, 9), 0), (640, 480));
    assert_eq!(fit(1, 1, (1, 1), 0), (2, 2));
    assert_eq!(fit(4096, 8, (1, 1), 0), (4096, 8));
    assert_eq!(fit(u32::MAX, 721, (1, 1), 0).1, 720);
}

#[test]
fn a_rate_that_is_only_a_clock_is_not_taken_for_one() {
    let rate = |base, average| {
        let stream =
            VideoStream { base_rate: base, average_rate: average, ..VideoStream::default() };
        stream.constant_rate()
    };
    assert_eq!(rate((30_000, 1_001), (30_000, 1_001)), (30_000, 1_001));
    assert_eq!(rate((25, 1), (52, 7)), (25, 1));
    assert_eq!(rate((1_000, 1), (0, 0)), (60, 1));
    assert_eq!(rate((90_000, 1), (30, 1)), (60, 1));
    assert_eq!(rate((240, 1), (240, 1)), (240, 1));
    assert_eq!(rate((1, 1), (1, 1)), (10, 1));
    assert_eq!(rate((1, 3), (1, 3)), (30, 3));
    assert_eq!(rate((0, 0), (0, 0)), (60, 1));
}

const PROBED: &str = r#"{"streams": [
    {"index": 0, "codec_type": "video", "codec_name": "png", "width": 9, "height": 9,
     "disposition": {"attached_pic": 1}},
    {"index": 1, "codec_type": "audio", "codec_name": "none", "channels": 4,
     "sample_rate": "48000", "disposition": {"default": 1}},
    {"index": 2, "codec_type": "audio", "codec_name": "aac", "channels": 2,
     "sample_rate": "48000", "start_time": "1.500000", "tags": {"DURATION": "00:01:04.25000000"}},
    {"index": 3, "codec_type": "video", "codec_name": "h264", "width": 640, "height": 360,
     "sample_aspect_ratio": "0:1", "r_frame_rate": "25/1", "start_time": "0.500000",
     "duration": "60.000000", "side_data_list": [{"side_data_type": "x"}, {"rotation": -90}]},
    {"index": 4, "codec_type": "data"}],
    "format": {"format_name": "matroska,webm", "start_time": "0.500000", "duration": "70.0"}}"#;

#[test]
fn covers_and_sound_without_decoder_are_passed_over() {
    let facts = MediaFacts::parse(PROBED.as_bytes(), "").expect("well formed");
    assert_eq!((facts.video.len(), facts.audio.len()), (1, 1));
    let (video, audio) = (facts.chosen_video().expect("one"), facts.chosen_audio().expect("one"));
    assert_eq!((video.index, video.rotation, video.pixel_shape), (3, -90, (1, 1)));
    assert_eq!((audio.index, audio.duration_us), (2, Some(62_750_000)));
}

#[test]
fn the_promise_is_when_the_last_of_what_is_taken_ends() {
    let facts = MediaFacts::parse(PROBED.as_bytes(), "").expect("well formed");
    assert_eq!(promised_us(&facts, true, true), Some(63_750_000));
    assert_eq!(promised_us(&facts, true, false), Some(60_000_000));
    assert_eq!(outlasting_us(&facts), 3_750_000);
    let guess = "[mp3 @ 0x1] Estimating duration from bitrate, this may be inaccurate";
    let guessed = MediaFacts::parse(PROBED.as_bytes(), guess).expect("well formed");
    assert_eq!(promised_us(&guessed, true, false), None, "a guess is no promise");
}

#[test]
fn a_length_that_is_not_said_is_measured_from_packets() {
    let mut facts = MediaFacts::parse(PROBED.as_bytes(), "").expect("well formed");
    facts.video[0].duration_us = None;
    let mut measure = Measure::default();
    let lines = [
        "stream_index=3|pts_time=0.500000|duration_time=0.040000",
        "stream_index=3|pts_time=9.500000|duration_time=0.040000",
        "stream_index=3|pts_time=8.500000|duration_time=N/A",
        "stream_index=3|pts_time=N/A",
        "",
    ];
    for line in lines {
        measure.line(line);
    }
    assert_eq!(measure.complete(&facts).video[0].duration_us, Some(9_040_000));
}

#[test]
fn times_are_read_exactly() {
    assert_eq!(parse_us("-0.007000"), Some(-7_000));
    assert_eq!(parse_us("3601.4"), Some(3_601_400_000));
    assert_eq!(parse_us("5"), Some(5_000_000));
    assert!(["N/A", "", "1.2.3", "--1", "1e3"].iter().all(|text| parse_us(text).is_none()));
}

#[test]
fn progress_never_falls_and_counts_only_what_moves() {
    let mut progress = FfmpegProgress::default();
    let block = |progress: &mut FfmpegProgress, time: &str| {
        progress.line("frame=1");
        progress.line(&format!("out_time_us={time}"));
        progress.line("speed= 2.5x");
        progress.line("progress=continue")
    };
    assert!(block(&mut progress, "N/A"));
    assert_eq!((progress.done_us, progress.speed, progress.moves), (None, Some(2.5), 1));
    block(&mut progress, "2000000");
    block(&mut progress, "1000000");
    assert_eq!((progress.done_us, progress.moves), (Some(2_000_000), 3));
    block(&mut progress, "1000000");
    assert_eq!(progress.moves, 3, "a block in which nothing is new is no progress");
    block(&mut progress, "-9223372036854775807");
    assert_eq!(progress.done_us, Some(2_000_000));
}

#[test]
fn other_tools_tell_percent() {
    assert_eq!(percent_line("progress 42.5"), Some(42.5));
    assert!(
        ["progress 101", "progress NaN", "42", "progress"]
            .iter()
            .all(|line| { percent_line(line).is_none() })
    );
}

#[test]
fn every_input_of_a_job_is_restricted_and_nothing_else() {
    let text = ["ffmpeg", "-i", "file:{input.source}", "-i", "file:{scratch}/p.png", "out"];
    let argv: Vec<Template> = text.iter().map(|text| text.parse().expect("well formed")).collect();
    let guarded = guarded(&argv, text.map(str::to_owned).to_vec());
    let whitelists: Vec<usize> =
        (0..guarded.len()).filter(|at| guarded[*at] == "-format_whitelist").collect();
    let inputs: Vec<usize> = (0..guarded.len()).filter(|at| guarded[*at] == "-i").collect();
    assert_eq!((whitelists.len(), inputs.len()), (1, 2));
    assert!(whitelists[0] < inputs[0]);
    let formats = &guarded[whitelists[0] + 1];
    for format in ["hls", "concat", "dash", "image2", "lavfi", "sdp", "tty", "srt"] {
        assert!(!formats.split(',').any(|allowed| allowed == format), "{format}");
    }
    let other: Vec<Template> = vec!["cp".parse().expect("plain"), "-i".parse().expect("plain")];
    assert_eq!(super::guarded(&other, vec!["cp".into(), "-i".into()]), ["cp", "-i"]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_in_a_persons_words() {
    let hls = "[hls @ 0x55] Format not on whitelist 'mov,mp4'\nfile:in/source: Invalid argument";
    assert!(bad_input(hls).contains("is a playlist (hls), which is not allowed"));
    let raw = hls.replace("[hls", "[rawvideo");
    assert_eq!(bad_input(&raw), "the file's format (rawvideo) is not allowed");
    let moov = "[mov,mp4 @ 0x5] moov atom not found\nfile:in/source: Invalid data found when";
    assert!(bad_input(moov).contains("damaged: its index (moov) is missing"));
}

#[test]
fn what_the_worker_lacked_is_told_from_what_the_file_is() {
    let full = "av_interleaved_write_frame(): No space left on device\nConversion failed!";
    assert_eq!(tool_failure("ffmpeg", "exit code 1", full).reason, Some("disk_full"));
    let broken = tool_failure("ffmpeg", "exit code 1", "a\na\nConversion failed!");
    assert_eq!(broken.reason, None);
    assert_eq!(broken.message, "ffmpeg ended with exit code 1; it says: a; Conversion failed!");
}

fn output() -> (Expected, MediaFacts) {
    let expected = Expected {
        video: true,
        audio: true,
        has_duration: true,
        duration_us: Some((4_000_000, 500_000)),
        size: Some((640, 360)),
        pixel_format: Some("yuv420p".into()),
        video_codec: Some("h264".into()),
        audio_codec: Some("aac".into()),
    };
    let video = VideoStream {
        codec: "h264".into(),
        pixel_format: "yuv420p".into(),
        ..video(640, 360, (1, 1), 0)
    };
    let audio = AudioStream { codec: "aac".into(), ..AudioStream::default() };
    let found = MediaFacts {
        duration_us: Some(4_020_000),
        video: vec![video],
        audio: vec![audio],
        ..MediaFacts::default()
    };
    (expected, found)
}

#[test]
fn an_output_that_is_what_was_asked_for_passes_with_all_its_checks() {
    let (expected, found) = output();
    let checks = verify("video.mp4", &expected, &found).expect("right");
    let duration = checks.iter().find(|check| check.name == "video.mp4: duration");
    let duration = duration.expect("checked");
    assert_eq!(
        (duration.expected.as_str(), duration.found.as_str()),
        ("4.00 s within 0.50 s", "4.02 s")
    );
    assert_eq!(checks.len(), 7);
}

#[test]
fn each_way_in_which_an_output_can_be_wrong_is_found() {
    type Change = fn(&mut MediaFacts);
    let wrong: [(Change, &str); 10] = [
        (|f| f.duration_us = Some(3_400_000), "too short"),
        (|f| f.duration_us = Some(4_600_000), "longer"),
        (|f| f.duration_us = None, "how long"),
        (|f| f.audio.clear(), "1 video, 0 audio"),
        (|f| f.video.clear(), "0 video, 1 audio"),
        (|f| f.video[0].width = 642, "642x360"),
        (|f| f.video[0].pixel_shape = (4, 3), "shown size"),
        (|f| f.video[0].rotation = 90, "360x640"),
        (|f| f.video[0].pixel_format = "yuv444p".into(), "yuv444p"),
        (|f| f.audio[0].codec = "mp3".into(), "mp3"),
    ];
    for (change, words) in wrong {
        let (expected, mut found) = output();
        change(&mut found);
        let fault = verify("video.mp4", &expected, &found).expect_err(words);
        assert!(fault.0.contains(words), "{words}: {fault:?}");
    }
}

#[test]
fn a_tools_build_is_read_from_what_it_says() {
    let said = "ffmpeg version 5.1.9-0+deb12u1 Copyright (c) 2000\nconfiguration: --enable-gpl\n";
    let tool = ToolIdentity::parse("ffmpeg", said).expect("a version");
    assert_eq!(tool.version, "5.1.9-0+deb12u1");
    let other = ToolIdentity::parse("ffmpeg", &said.replace("gpl", "x")).expect("a version");
    assert_ne!(tool.digest, other.digest, "another configuration is another build");
    let blender = ToolIdentity::parse("blender", "Blender 3.4.1\n\tbuild date").expect("a version");
    assert_eq!(blender.version, "3.4.1");
    assert!(ToolIdentity::parse("x", "").is_none());
}
