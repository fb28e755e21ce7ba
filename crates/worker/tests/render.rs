//! Renders steered, limited and failing: what the claim loop relies on.

mod support;

use std::{path::Path, sync::Arc};

use palisade_core::{Timestamp, clock::Clock, job::FailureKind, recipe::Recipe};
use palisade_worker::{
    recipes,
    render::{RenderControl, RenderError, RenderProgress, RenderRequest, Renderer},
};
use support::{
    clips::{clip, ffmpeg, ffprobe},
    exports::{Export, built_in, export, renderer, request, run},
    is_alive, is_frozen, nanny, until,
};
use tokio::sync::watch;

/// A recipe of an operator's own, whose one step is a shell script.
fn scripted(script: &str, extra: &str) -> Recipe {
    let text = format!(
        "name = \"scripted\"\ntool = {{ name = \"sh\" }}\n{extra}\n\
         inputs = [{{ name = \"source\", kind = \"bytes\" }}]\n\
         outputs = [{{ name = \"out-*.bin\", media_type = \"application/octet-stream\" }}]\n\
         [[steps]]\nprogress = \"lines\"\nargv = [\"sh\", \"-c\", '''{script}''', \"sh\", \
         \"{{outputs}}\", \"{{input.source}}\"]\n"
    );
    recipes::parse(&text.replace("name = \"sh\"", "name = \"bash\"")).expect("a recipe")
}

async fn run_script(script: &str, extra: &str) -> Export {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source.bin");
    std::fs::write(&source, "bytes").expect("written");
    let request = request(scripted(script, extra), &[], &source, &folder.path().join("scratch"));
    run(folder, request).await
}

/// The pids of all processes that run in a folder.
fn running_in(folder: &Path) -> Vec<i32> {
    let folder = folder.canonicalize().expect("it is there");
    let entries = std::fs::read_dir("/proc").expect("readable");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|c| c == folder))
        .collect()
}

/// The tools among them: all but the nannies.
fn tools_in(folder: &Path) -> Vec<i32> {
    let is_tool = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        !name.starts_with("palisade") && !name.starts_with("exe")
    };
    running_in(folder).into_iter().filter(is_tool).collect()
}

/// A long render of a clip that takes a few seconds, begun; with its scratch folder.
struct Begun {
    folder: tempfile::TempDir,
    control: RenderControl,
    progress: watch::Receiver<RenderProgress>,
    render: tokio::task::JoinHandle<Result<palisade_worker::render::Rendered, RenderError>>,
}

impl Begun {
    async fn export() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("long.mp4");
        ffmpeg(
            folder.path(),
            "-f lavfi -i testsrc2=s=640x360:r=25:d=30 -c:v libx264 -preset ultrafast \
             -pix_fmt yuv420p long.mp4",
        );
        let scratch = folder.path().join("scratch");
        let parameters = [("preset", "slow")];
        Self::of(request(built_in("h264-720p"), &parameters, &source, &scratch), folder).await
    }

    /// Begins, and waits for the first progress.
    async fn of(request: RenderRequest, folder: tempfile::TempDir) -> Self {
        let (sender, mut progress) = watch::channel(RenderProgress::default());
        let control = RenderControl::new();
        let steered = control.clone();
        let render =
            tokio::spawn(async move { renderer().render(&request, &steered, &sender).await });
        progress.wait_for(|progress| progress.percent > Some(0.0)).await.expect("it begins");
        Self { folder, control, progress, render }
    }

    fn scratch(&self) -> std::path::PathBuf {
        self.folder.path().join("scratch")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_render_that_is_killed_says_so_and_leaves_nothing_running() {
    let begun = Begun::export().await;
    assert!(!tools_in(&begun.scratch()).is_empty());
    begun.control.kill();
    assert_eq!(begun.render.await.expect("no panic"), Err(RenderError::Killed));
    assert_eq!(running_in(&begun.folder.path().join("scratch")), Vec::<i32>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_render_that_was_frozen_goes_on_and_comes_to_the_same_bytes() {
    let Begun { folder, control, progress, render } = Begun::export().await;
    let scratch = folder.path().join("scratch");
    control.freeze();
    let tools = tools_in(&scratch);
    until("ffmpeg is stopped", || tools.iter().all(|pid| is_frozen(*pid)));
    let percent = progress.borrow().percent;
    control.thaw();
    let rendered = render.await.expect("no panic").expect("complete");
    assert!(percent < Some(100.0), "it was frozen in the midst");
    let frozen = std::fs::read(&rendered.outputs[0].path).expect("readable");
    let again = folder.path().join("again");
    let source = folder.path().join("long.mp4");
    let request = request(built_in("h264-720p"), &[("preset", "slow")], &source, &again);
    let unhindered = run(tempfile::tempdir().expect("a folder"), request).await;
    assert!(std::fs::read(unhindered.output("video.mp4")).expect("readable") == frozen);
    // Monotone, and never ahead of what is written.
    let percents: Vec<f64> = unhindered.progress.iter().filter_map(|p| p.percent).collect();
    assert!(percents.len() > 4 && percents.is_sorted(), "{percents:?}");
    assert_eq!(percents.last(), Some(&100.0));
    for progress in &unhindered.progress {
        let (Some(percent), Some(done_ms)) = (progress.percent, progress.done_ms) else { continue };
        let written = f64::from(u32::try_from(done_ms).expect("short")) / 300.0;
        assert!((percent - written).abs() <= 5.0, "{percent} {written}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_render_that_is_killed_while_frozen_ends() {
    let begun = Begun::export().await;
    begun.control.freeze();
    let tools = tools_in(&begun.scratch());
    until("ffmpeg is stopped", || tools.iter().all(|pid| is_frozen(*pid)));
    begun.control.kill();
    begun.control.thaw();
    assert_eq!(begun.render.await.expect("no panic"), Err(RenderError::Killed));
    assert!(!tools.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_render_that_is_dropped_is_killed() {
    let begun = Begun::export().await;
    let tools = tools_in(&begun.scratch());
    begun.render.abort();
    until("nothing runs", || !tools.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test]
async fn a_render_that_is_frozen_before_it_begins_does_not_begin() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = clip(folder.path(), "one-frame.mp4");
    let scratch = folder.path().join("scratch");
    let request = request(built_in("thumbnail"), &[], &source, &scratch);
    let control = RenderControl::new();
    control.freeze();
    let (sender, _receiver) = watch::channel(RenderProgress::default());
    let render = renderer();
    let mut render = Box::pin(render.render(&request, &control, &sender));
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), &mut render).await;
    assert!(early.is_err() && !scratch.join("children").exists(), "nothing was started");
    control.thaw();
    assert!(render.await.is_ok());
}

#[tokio::test]
async fn the_same_input_gives_the_same_bytes_of_every_built_in_recipe() {
    for recipe in recipes::built_in().iter() {
        let mut bytes = Vec::new();
        for _time in 0..2 {
            let parameters: &[(&str, &str)] =
                if recipe.parameter("preset").is_some() { &[("preset", "ultrafast")] } else { &[] };
            let export = export("ordinary.mp4", recipe.name.as_str(), parameters).await;
            let rendered = export.outcome.as_ref().expect("complete");
            let read = |o: &palisade_worker::render::RenderedOutput| {
                (o.name.clone(), blake3::hash(&std::fs::read(&o.path).expect("readable")))
            };
            bytes.push(rendered.outputs.iter().map(read).collect::<Vec<_>>());
        }
        assert!(bytes[0] == bytes[1], "{}", recipe.name);
    }
}

#[tokio::test]
async fn a_folder_of_segments_is_one_list_of_outputs() {
    let folder = tempfile::tempdir().expect("a folder");
    ffmpeg(
        folder.path(),
        "-f lavfi -i testsrc2=s=320x180:r=25:d=14 -f lavfi -i sine=d=14 -c:v libx264 -preset \
         ultrafast -pix_fmt yuv420p -c:a aac long.mp4",
    );
    let source = folder.path().join("long.mp4");
    let scratch = folder.path().join("scratch");
    let request = request(built_in("hls"), &[("preset", "ultrafast")], &source, &scratch);
    let export = run(folder, request).await;
    let outputs = &export.outcome.as_ref().expect("complete").outputs;
    let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
    let segments = ["index.m3u8", "segment-00000.ts", "segment-00001.ts", "segment-00002.ts"];
    assert_eq!(names, segments);
    let playlist = std::fs::read_to_string(export.output("index.m3u8")).expect("readable");
    assert!(playlist.contains("#EXT-X-ENDLIST") && playlist.contains("\nsegment-00002.ts\n"));
    assert_eq!(outputs[1].media_type, "video/mp2t");
}

#[tokio::test]
async fn a_recipe_of_two_steps_counts_once() {
    let export = export("ordinary.mp4", "gif-preview", &[("seconds", "3"), ("fps", "25")]).await;
    let percents: Vec<f64> = export.progress.iter().filter_map(|p| p.percent).collect();
    assert!(percents.is_sorted(), "{percents:?}");
    assert_eq!(percents.last(), Some(&100.0));
    assert_eq!(export.outcome.as_ref().expect("complete").provenance.commands.len(), 2);
    let text = ffprobe(&export.output("preview.gif"), "-show_entries format=duration");
    assert_eq!(text.trim(), "duration=3.000000");
}

#[tokio::test]
async fn an_operators_program_tells_percent_and_its_files_are_taken() {
    let export = run_script(
        "echo progress 25; cat \"$2\" > \"$1/out-1.bin\"; echo two > \"$1/out-2.bin\"; \
         ln -s /etc/passwd \"$1/out-3.bin\"; echo progress 80",
        "",
    )
    .await;
    let rendered = export.outcome.as_ref().expect("complete");
    let names: Vec<&str> = rendered.outputs.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["out-1.bin", "out-2.bin"], "a link is no output");
    assert_eq!(std::fs::read_to_string(export.output("out-1.bin")).expect("readable"), "bytes");
    assert_eq!(export.progress.last().and_then(|p| p.percent), Some(100.0));
}

#[tokio::test]
async fn an_output_that_is_not_there_or_empty_is_a_definite_failure() {
    for (script, words) in [("true", "there is no output"), (": > \"$1/out-1.bin\"", "is empty")] {
        let export = run_script(script, "").await;
        let failure = export.failure();
        assert!(failure.message.contains(words), "{}", failure.message);
        assert_eq!((failure.reason.as_str(), failure.kind), ("bad_output", FailureKind::Final));
    }
}

#[tokio::test]
async fn exit_codes_mean_what_the_recipe_says_and_signals_may_be_tried_again() {
    let codes = "exit_codes = { retry = [75], give_up = [2], otherwise = \"give-up\" }";
    for (script, kind) in [
        ("echo broken >&2; exit 2", FailureKind::Final),
        ("echo broken >&2; exit 75", FailureKind::Retryable),
        ("echo broken >&2; exit 9", FailureKind::Final),
        ("echo broken >&2; kill -KILL $$", FailureKind::Retryable),
        ("echo 'write: No space left on device' >&2; exit 2", FailureKind::Retryable),
    ] {
        let export = run_script(script, codes).await;
        let failure = export.failure();
        assert_eq!(failure.kind, kind, "{script}: {}", failure.message);
        assert!(failure.message.contains("broken") || failure.reason == "disk_full");
    }
}

#[tokio::test]
async fn a_full_disk_is_the_workers_trouble_and_not_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = clip(folder.path(), "silent.mp4");
    let mut recipe = built_in("h264-720p");
    let last = recipe.steps[0].argv.last_mut().expect("it has arguments");
    *last = "file:/dev/full".parse().expect("plain");
    let request = request(recipe, &[], &source, &folder.path().join("scratch"));
    let export = run(folder, request).await;
    let failure = export.failure();
    assert_eq!((failure.reason.as_str(), failure.kind), ("disk_full", FailureKind::Retryable));
    assert!(failure.message.contains("disk is full"), "{}", failure.message);
}

#[tokio::test]
async fn a_tool_that_stands_still_is_ended_and_so_is_one_that_takes_too_long() {
    let still = run_script("echo progress 1; exec sleep 1000", "stall_limit_s = 1").await;
    assert_eq!(
        (still.failure().reason.as_str(), still.failure().kind),
        ("stalled", FailureKind::Retryable)
    );
    let busy = "i=0; while :; do i=$((i+1)); echo progress 1; sleep 0.1; done";
    let long = run_script(busy, "stall_limit_s = 100\ntime_limit_s = 1").await;
    assert_eq!(long.failure().reason, "time_limit", "{:?}", long.failure());
    assert_eq!(running_in(&long.folder.path().join("scratch")), Vec::<i32>::new());
}

#[tokio::test]
async fn a_pinned_tool_of_another_version_does_not_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = clip(folder.path(), "one-frame.mp4");
    let mut recipe = built_in("thumbnail");
    recipe.tool.version = Some("0.1".to_owned());
    let request = request(recipe, &[], &source, &folder.path().join("scratch"));
    let export = run(folder, request).await;
    assert_eq!(export.failure().reason, "tool_mismatch");
}

#[tokio::test]
async fn a_tool_says_which_build_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = renderer().identify("ffmpeg", folder.path()).await.expect("it is installed");
    assert!(tool.line.starts_with("ffmpeg version") && !tool.version.is_empty());
    let missing = renderer().identify("no-such-tool", folder.path()).await;
    let Err(RenderError::Failed(failure)) = missing else { panic!("there is none") };
    assert_eq!(failure.reason, "tool_missing");
}

#[tokio::test]
async fn an_input_is_never_written_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = clip(folder.path(), "silent.mp4");
    let before = std::fs::read(&source).expect("readable");
    let mut recipe = built_in("h264-720p");
    recipe.steps[0].argv.pop();
    recipe.steps[0].argv.push("file:{input.source}".parse().expect("well formed"));
    let request = request(recipe, &[], &source, &folder.path().join("scratch"));
    let export = run(folder, request).await;
    assert!(export.outcome.is_err());
    assert!(std::fs::read(&source).expect("readable") == before);
}

/// A clock that stands still: limits are measured by the clock handed in, and by no other.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(7)
    }
}

#[tokio::test]
async fn limits_follow_the_clock_that_was_handed_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source.bin");
    std::fs::write(&source, "bytes").expect("written");
    let script = "echo progress 1; sleep 2.5; echo done > \"$1/out-1.bin\"";
    let recipe = scripted(script, "stall_limit_s = 1\ntime_limit_s = 1");
    let request = request(recipe, &[], &source, &folder.path().join("scratch"));
    let (sender, _receiver) = watch::channel(RenderProgress::default());
    let renderer = Renderer::new(nanny(), Arc::new(Still));
    let outcome = renderer.render(&request, &RenderControl::new(), &sender).await;
    assert!(outcome.is_ok(), "{outcome:?}");
}
