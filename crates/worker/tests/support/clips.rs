//! Clips of the kinds that exports get from real people, made with ffmpeg.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Runs ffmpeg in a folder; `arguments` are split at spaces.
#[expect(clippy::disallowed_methods, reason = "test material is made by no child under test")]
pub(crate) fn ffmpeg(folder: &Path, arguments: &str) {
    let status = Command::new("ffmpeg")
        .args(["-nostdin", "-loglevel", "error", "-y"])
        .args(arguments.split_ascii_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .status()
        .expect("ffmpeg is installed");
    assert!(status.success(), "ffmpeg {arguments}");
}

/// What ffprobe says of a file, one `key=value` a line, asked for apart from the code under test.
#[expect(clippy::disallowed_methods, reason = "a second opinion, apart from the code under test")]
pub(crate) fn ffprobe(file: &Path, arguments: &str) -> String {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-of", "default=nw=1"])
        .args(arguments.split_ascii_whitespace())
        .arg(file)
        .output()
        .expect("ffprobe is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

const FAST: &str = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p";

fn picture(size: &str, seconds: u32) -> String {
    format!("-f lavfi -i testsrc2=s={size}:r=25:d={seconds}")
}

fn tone(seconds: u32) -> String {
    format!("-f lavfi -i sine=f=440:d={seconds}")
}

/// The first `percent` of a file, as an upload that was cut off leaves it.
fn cut(folder: &Path, whole: &str, percent: usize, name: &str) {
    let bytes = std::fs::read(folder.join(whole)).expect("read");
    std::fs::write(folder.join(name), &bytes[..bytes.len() * percent / 100]).expect("written");
}

/// Makes the clip of that name in a folder, and answers where it is.
pub(crate) fn clip(folder: &Path, name: &str) -> PathBuf {
    if let Some(arguments) = generated(name).or_else(|| streams(name)) {
        ffmpeg(folder, &format!("{arguments} {name}"));
    } else if let Some(arguments) = derived(folder, name) {
        ffmpeg(folder, &format!("{arguments} {name}"));
    } else if !broken(folder, name) {
        // Any other name: an ordinary clip under it.
        let ordinary = clip(folder, "ordinary.mp4");
        std::fs::copy(ordinary, folder.join(name)).expect("copied");
    }
    folder.join(name)
}

/// Clips by their pictures.
fn generated(name: &str) -> Option<String> {
    let (four, three) = (picture("640x360", 4), picture("320x180", 3));
    Some(match name {
        "ordinary.mp4" => format!("{four} {} {FAST} -c:a aac -shortest", tone(4)),
        "odd-sides.mkv" => format!(
            "{} {} -vf scale=427:241 -c:v ffv1 -pix_fmt yuv444p -c:a pcm_s16le",
            picture("426x240", 4),
            tone(4)
        ),
        // Live, so without a duration: as browsers record.
        "no-duration.webm" => {
            let coded = "-c:v libvpx -deadline realtime -b:v 500k -c:a libopus -f webm -live 1";
            format!("{four} {} {coded}", tone(4))
        }
        "variable-rate.mkv" => format!(
            "{} {} -vf select='if(lt(t,2),1,eq(mod(n,50),0))' -vsync vfr {FAST} -c:a aac",
            picture("320x180", 6),
            tone(6)
        ),
        // The times are ms, and no two frames as far apart: as browsers record, again.
        "clock-rate.webm" => {
            let select = "select='eq(mod(n,37),0)+eq(mod(n,101),0)' -vsync vfr";
            let source = "-f lavfi -i testsrc2=s=320x180:r=1000:d=3";
            format!("{source} -vf {select} -c:v libvpx -deadline realtime")
        }
        "silent.mp4" => format!("{three} {FAST}"),
        "ten-bit.mkv" => {
            format!("{} -c:v ffv1 -pix_fmt yuv420p10le -c:a flac", picture("640x360", 3))
        }
        "full-range.avi" => format!("{three} -c:v mjpeg -pix_fmt yuvj422p"),
        "wide-pixels.mp4" => {
            format!("{} {} -vf setsar=64/45 {FAST} -c:a aac", picture("720x576", 3), tone(3))
        }
        "absurd-pixels.mp4" => format!("{three} -vf setsar=1000/1 {FAST}"),
        "one-frame.mp4" => format!("{} -frames:v 1 {FAST}", picture("320x180", 1)),
        "large.mp4" => format!("{} {FAST}", picture("1440x2560", 1)),
        _ => return None,
    })
}

/// Clips by their sound, and by how it lies beside the pictures.
fn streams(name: &str) -> Option<String> {
    let three = picture("320x180", 3);
    Some(match name {
        "surround.mp4" => {
            let sound = "aevalsrc=0.1*sin(440*2*PI*t)|0|0|0|0|0:c=5.1:d=3";
            format!("{three} -f lavfi -i {sound} {FAST} -c:a aac")
        }
        "long-sound.mp4" => format!("{three} {} {FAST} -c:a aac", tone(6)),
        "late-sound.mkv" => format!("{three} -itsoffset 2 {} {FAST} -c:a aac", tone(3)),
        "no-length.mp3" => format!("{} -c:a libmp3lame -q:a 9 -write_xing 0", tone(7)),
        _ => return None,
    })
}

/// Clips made of an ordinary one.
fn derived(folder: &Path, name: &str) -> Option<String> {
    let cover = || ffmpeg(folder, &format!("{} -frames:v 1 cover.png", picture("300x300", 1)));
    let arguments = match name {
        "rotated-phone.mp4" => "-i ordinary.mp4 -c copy -metadata:s:v:0 rotate=90".to_owned(),
        "upside-down.mp4" => "-i ordinary.mp4 -c copy -metadata:s:v:0 rotate=180".to_owned(),
        "song-with-cover.mp3" => {
            cover();
            let mapped = "-map 0:a -map 1:v -c:a libmp3lame -c:v copy -id3v2_version 3";
            format!("{} -i cover.png {mapped} -disposition:v attached_pic", tone(5))
        }
        "cover-first.mp4" => {
            cover();
            let mapped = "-map 0:v -map 1 -c copy -disposition:v:0 attached_pic";
            format!("-i cover.png -i ordinary.mp4 {mapped}")
        }
        "late-start.ts" => "-i ordinary.mp4 -c copy -output_ts_offset 3600".to_owned(),
        "many-streams.mkv" => {
            let subtitle = "1\n00:00:00,500 --> 00:00:02,000\nhello\n";
            std::fs::write(folder.join("s.srt"), subtitle).expect("written");
            let mapped = "-map 0:v -map 0:a -map 1:a -map 2:s -c:v copy -c:a aac -c:s srt";
            format!("-i ordinary.mp4 {} -i s.srt {mapped}", tone(4))
        }
        // A slide show: the last picture is to be shown for three seconds.
        "last-long.mp4" => {
            let select = "select='if(lt(t,2),1,eq(mod(n,50),0))' -vsync vfr";
            let arguments = format!("{} -vf {select} {FAST}", picture("320x180", 6));
            ffmpeg(folder, &format!("{arguments} slides.mp4"));
            "-i slides.mp4 -c copy -bsf:v setts=duration=if(eq(N\\,51)\\,3/TB\\,DURATION)"
                .to_owned()
        }
        // A call whose picture changes its size.
        "resized.webm" => {
            let coded = "-c:v libvpx -deadline realtime -b:v 500k";
            ffmpeg(folder, &format!("{} {coded} one.webm", picture("640x360", 2)));
            ffmpeg(folder, &format!("{} {coded} two.webm", picture("320x240", 2)));
            let list = "ffconcat version 1.0\nfile one.webm\nfile two.webm\n";
            std::fs::write(folder.join("list.txt"), list).expect("written");
            "-f concat -i list.txt -c copy".to_owned()
        }
        _ => return None,
    };
    clip(folder, "ordinary.mp4");
    Some(arguments)
}

/// Files that are not what they say they are.
fn broken(folder: &Path, name: &str) -> bool {
    let text = match name {
        "cut-no-index.mp4" => {
            let whole = format!("{} {} {FAST} -c:a aac", picture("640x360", 4), tone(4));
            ffmpeg(folder, &format!("{whole} whole.mp4"));
            cut(folder, "whole.mp4", 60, name);
            return true;
        }
        "cut-half.mp4" | "cut-half.mkv" => {
            let whole = name.replace("cut-half", "whole");
            let arguments = format!("{} {} {FAST} -c:a aac", picture("640x360", 10), tone(10));
            ffmpeg(folder, &format!("{arguments} -movflags +faststart {whole}"));
            cut(folder, &whole, 40, name);
            return true;
        }
        "empty.mp4" => String::new(),
        "text.mp4" => "I am not a video.\n".to_owned(),
        "hostile-playlist.mp4" => {
            let ordinary = clip(folder, "ordinary.mp4");
            format!(
                "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:10.0,\nfile://{}\n#EXTINF:10.0,\n\
                 http://127.0.0.1:9/x.ts\n#EXT-X-ENDLIST\n",
                ordinary.display()
            )
        }
        "hostile-concat.mp4" => {
            let ordinary = clip(folder, "ordinary.mp4");
            format!("ffconcat version 1.0\nfile '{}'\n", ordinary.display())
        }
        _ => return false,
    };
    std::fs::write(folder.join(name), text).expect("written");
    true
}
