use super::*;

/// Feeds blocks of `-progress` to a step, and answers the percentages of the whole.
fn told(
    sender: &watch::Sender<RenderProgress>,
    share: (f64, f64),
    total_us: Option<i64>,
    times_us: &[i64],
) -> Vec<Option<f64>> {
    let mut listener = StepListener {
        kind: Progress::Ffmpeg,
        ffmpeg: FfmpegProgress::default(),
        total_us,
        share,
        progress: sender,
    };
    let mut percents = Vec::new();
    for time_us in times_us {
        listener.line(&format!("out_time_us={time_us}"));
        listener.line("progress=continue");
        percents.push(sender.borrow().percent);
    }
    percents
}

#[test]
fn each_step_adds_its_own_share_and_the_whole_never_falls() {
    let sender = watch::Sender::new(RenderProgress::default());
    let first = told(&sender, (0.0, 40.0), Some(1_000_000), &[0, 500_000, 1_000_000]);
    assert_eq!(first, [Some(0.0), Some(20.0), Some(40.0)]);
    let second = told(&sender, (40.0, 60.0), Some(1_000_000), &[0, 500_000, 2_000_000]);
    assert_eq!(second, [Some(40.0), Some(70.0), Some(99.9)], "100 is for what is verified");
    let late = told(&sender, (0.0, 40.0), Some(1_000_000), &[250_000]);
    assert_eq!(late, [Some(99.9)]);
}

#[test]
fn without_a_promised_length_no_percentage_is_made_up() {
    let sender = watch::Sender::new(RenderProgress::default());
    assert_eq!(told(&sender, (0.0, 100.0), None, &[0, 5_000_000]), [None, None]);
    assert_eq!(sender.borrow().done_ms, Some(5_000));
}
