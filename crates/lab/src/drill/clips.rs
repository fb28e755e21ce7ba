//! Clips to export, made with ffmpeg's own test pictures and tones.

use std::{path::Path, process::Stdio};

use super::DrillError;

/// A clip to be made.
#[derive(Debug, Clone, Copy)]
pub struct Clip {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Length in seconds.
    pub seconds: u32,
    /// Frames a second.
    pub rate: u32,
    /// Differs between clips, so that their bytes do.
    pub tone_hz: u32,
}

/// Makes a clip at `path`. Noise in the picture makes it worth an encoder's time.
#[expect(clippy::disallowed_methods, reason = "the drill's own processes start here alone")]
pub async fn make_clip(clip: Clip, path: &Path) -> Result<(), DrillError> {
    let Clip { width, height, seconds, rate, tone_hz } = clip;
    let picture = format!("testsrc2=s={width}x{height}:r={rate}:d={seconds},noise=alls=12:allf=t");
    let tone = format!("sine=f={tone_hz}:d={seconds}");
    let output = tokio::process::Command::new("ffmpeg")
        .args(["-nostdin", "-hide_banner", "-loglevel", "error", "-y"])
        .args(["-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", &tone])
        .args(["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"])
        .args(["-c:a", "aac", "-shortest"])
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(DrillError::io("cannot start ffmpeg; is it installed?"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(DrillError::Tool { tool: "ffmpeg".to_owned(), message })
}
