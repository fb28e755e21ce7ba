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
    let make = |arguments: String| ffmpeg(folder, &format!("{arguments} {name}"));
    let ordinary = || drop(clip(folder, "ordinary.mp4"));
    match name {
        "ordinary.mp4" => {
            make(format!("{} {} {FAST} -c:a aac -shortest", picture("640x360", 4), tone(4)));
        }
        "odd-sides.mkv" => make(format!(
            "{} {} -vf scale=427:241 -c:v ffv1 -pix_fmt yuv444p -c:a pcm_s16le",
            picture("426x240", 4),
            tone(4)
        )),
        "rotated-phone.mp4" => {
            ordinary();
            make("-i ordinary.mp4 -c copy -metadata:s:v:0 rotate=90".to_owned());
        }
        "upside-down.mp4" => {
            ordinary();
            make("-i ordinary.mp4 -c copy -metadata:s:v:0 rotate=180".to_owned());
        }
        // To a pipe, so that ffmpeg cannot go back and write a duration: as browsers record.
        "no-duration.webm" => make(format!(
            "{} {} -c:v libvpx -deadline realtime -b:v 500k -c:a libopus -f webm -live 1",
            picture("640x360", 4),
            tone(4)
        )),
        "variable-rate.mkv" => make(format!(
            "{} {} -vf select='if(lt(t,2),1,eq(mod(n,50),0))' -vsync vfr {FAST} -c:a aac",
            picture("320x180", 6),
            tone(6)
        )),
        "silent.mp4" => make(format!("{} {FAST}", picture("320x180", 3))),
        "song-with-cover.mp3" => {
            ffmpeg(folder, &format!("{} -frames:v 1 cover.png", picture("300x300", 1)));
            make(format!(
                "{} -i cover.png -map 0:a -map 1:v -c:a libmp3lame -c:v copy -id3v2_version 3 \
                 -disposition:v attached_pic",
                tone(5)
            ));
        }
        "cover-first.mp4" => {
            ordinary();
            ffmpeg(folder, &format!("{} -frames:v 1 cover.png", picture("300x300", 1)));
            make(
                "-i cover.png -i ordinary.mp4 -map 0:v -map 1 -c copy -disposition:v:0 \
                  attached_pic"
                    .to_owned(),
            );
        }
        "ten-bit.mkv" => make(format!(
            "{} {} -c:v ffv1 -pix_fmt yuv420p10le -c:a flac",
            picture("640x360", 3),
            tone(3)
        )),
        "wide-pixels.mp4" => {
            make(format!("{} {} -vf setsar=64/45 {FAST} -c:a aac", picture("720x576", 3), tone(3)))
        }
        "surround.mp4" => make(format!(
            "{} -f lavfi -i aevalsrc=0.1*sin(440*2*PI*t)|0|0|0|0|0:c=5.1:d=3 {FAST} -c:a aac",
            picture("320x180", 3)
        )),
        "late-start.ts" => {
            ordinary();
            make("-i ordinary.mp4 -c copy -output_ts_offset 3600".to_owned());
        }
        "many-streams.mkv" => {
            ordinary();
            let subtitle = "1\n00:00:00,500 --> 00:00:02,000\nhello\n";
            std::fs::write(folder.join("s.srt"), subtitle).expect("written");
            make(format!(
                "-i ordinary.mp4 {} -i s.srt -map 0:v -map 0:a -map 1:a -map 2:s -c:v copy -c:a \
                 aac -c:s srt",
                tone(4)
            ));
        }
        "one-frame.mp4" => make(format!("{} -frames:v 1 {FAST}", picture("320x180", 1))),
        "large.mp4" => make(format!("{} {FAST}", picture("1440x2560", 1))),
        "full-range.avi" => make(format!("{} -c:v mjpeg -pix_fmt yuvj422p", picture("320x180", 2))),
        "damaged-index.mp4" | "cut-no-index.mp4" => {
            let whole = format!("{} {} {FAST} -c:a aac", picture("640x360", 4), tone(4));
            ffmpeg(folder, &format!("{whole} whole.mp4"));
            cut(folder, "whole.mp4", 60, name);
        }
        "cut-half.mp4" | "cut-half.mkv" => {
            let whole = name.replace("cut-half", "whole");
            let arguments = format!("{} {} {FAST} -c:a aac", picture("640x360", 10), tone(10));
            ffmpeg(folder, &format!("{arguments} -movflags +faststart {whole}"));
            cut(folder, &whole, 40, name);
        }
        "empty.mp4" => std::fs::write(folder.join(name), "").expect("written"),
        "text.mp4" => {
            std::fs::write(folder.join(name), "I am not a video.\n").expect("written");
        }
        "hostile-playlist.mp4" => {
            ordinary();
            let text = format!(
                "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:10.0,\nfile://{}/ordinary.mp4\n\
                 #EXTINF:10.0,\nhttp://127.0.0.1:9/x.ts\n#EXT-X-ENDLIST\n",
                folder.display()
            );
            std::fs::write(folder.join(name), text).expect("written");
        }
        "hostile-concat.mp4" => {
            ordinary();
            let text = format!("ffconcat version 1.0\nfile '{}/ordinary.mp4'\n", folder.display());
            std::fs::write(folder.join(name), text).expect("written");
        }
        other => {
            ordinary();
            std::fs::copy(folder.join("ordinary.mp4"), folder.join(other)).expect("copied");
        }
    }
    folder.join(name)
}
