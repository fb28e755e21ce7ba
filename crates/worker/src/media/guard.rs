//! What stands between ffmpeg and a file that somebody sent: the allow-lists, put before every
//! input whatever the recipe says, so that a recipe cannot forget them.

use palisade_core::recipe::{Placeholder, Template};

/// The formats of inputs. Each is a container or an elementary stream that holds its own bytes.
/// Not on it: playlists and manifests (`hls`, `dash`, `concat`, `imf`, `sdp`), patterns of files
/// (`image2`), devices and generators (`lavfi`), scripts, and formats that name other files.
/// `-protocol_whitelist file` alone does not do: a playlist reads other local files by it.
const FORMATS: &str = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,ogg,wav,w64,\
mp3,flac,aac,ac3,eac3,dts,truehd,asf,flv,live_flv,mxf,gxf,dv,h263,h264,hevc,m4v,ivf,obu,av1,vc1,nut,\
caf,aiff,au,amr,amrnb,amrwb,wv,ape,tta,tak,rm,gif,apng,mjpeg,yuv4mpegpipe,wtv,nsv,dirac,\
png_pipe,jpeg_pipe,webp_pipe,bmp_pipe,tiff_pipe";

/// How much is looked at to tell what streams there are, in bytes and µs: broadcasts begin their
/// sound late.
const PROBE_BYTES: &str = "50000000";
const ANALYSE_US: &str = "20000000";

fn restrictions() -> [&'static str; 8] {
    [
        "-protocol_whitelist",
        "file",
        "-format_whitelist",
        FORMATS,
        "-probesize",
        PROBE_BYTES,
        "-analyzeduration",
        ANALYSE_US,
    ]
}

/// Whether this is ffmpeg, whose arguments are made safe.
fn is_ffmpeg(program: &str) -> bool {
    program == "ffmpeg"
}

/// The arguments of a step as they are run: `expanded` are those of `argv`, one for one. For
/// ffmpeg, the restrictions come before every `-i` that reads an input of the job, and ffmpeg is
/// told not to ask, to say its progress, and to say nothing but warnings else.
pub(crate) fn guarded(argv: &[Template], expanded: Vec<String>) -> Vec<String> {
    if !expanded.first().is_some_and(|program| is_ffmpeg(program)) {
        return expanded;
    }
    let reads_input = |template: Option<&Template>| {
        template.is_some_and(|template| {
            template.placeholders().any(|place| matches!(place, Placeholder::Input(_)))
        })
    };
    let mut guarded = Vec::with_capacity(expanded.len() + 24);
    for (number, argument) in expanded.into_iter().enumerate() {
        if argument == "-i" && reads_input(argv.get(number + 1)) {
            guarded.extend(restrictions().map(str::to_owned));
        }
        guarded.push(argument);
        if number == 0 {
            let always = "-hide_banner -nostdin -y -loglevel warning -nostats -progress pipe:1";
            guarded.extend(always.split(' ').map(str::to_owned));
        }
    }
    guarded
}

fn probe(restricted: &[&str], what: &[&str], path: &str) -> Vec<String> {
    let mut argv = vec!["ffprobe", "-hide_banner", "-loglevel", "warning"];
    argv.extend(restricted);
    argv.extend(what);
    let mut argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    // The option, so that no name can be taken for one.
    argv.extend(["-i".to_owned(), format!("file:{path}")]);
    argv
}

const EVERYTHING: [&str; 4] = ["-show_format", "-show_streams", "-of", "json"];

/// Looks into an input.
pub(crate) fn probe_input_argv(path: &str) -> Vec<String> {
    probe(&restrictions(), &EVERYTHING, path)
}

/// Looks into an output of our own making, which may be a playlist of its neighbours.
pub(crate) fn probe_output_argv(path: &str) -> Vec<String> {
    probe(&["-protocol_whitelist", "file"], &EVERYTHING, path)
}

/// Lists the times of all packets of an input: see [`super::Measure`].
pub(super) fn packets_argv(path: &str) -> Vec<String> {
    let entries = "packet=stream_index,pts_time,duration_time";
    probe(&restrictions(), &["-show_entries", entries, "-of", "compact=p=0"], path)
}
