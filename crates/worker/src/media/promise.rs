//! How long an output must be, by what its input says of itself.

use super::MediaFacts;

/// The promised length, in µs, of an output that takes the chosen video and sound of this input:
/// until the last of them ends, counted from where the file begins. Absent where the input does
/// not say.
///
/// What is not taken (a subtitle that stays on, a second track) promises nothing.
pub(crate) fn promised_us(input: &MediaFacts, video: bool, audio: bool) -> Option<i64> {
    let chosen_video = input.chosen_video().filter(|_| video);
    let chosen_audio = input.chosen_audio().filter(|_| audio);
    let spans = [
        chosen_video.map(|stream| (stream.start_us, stream.duration_us)),
        chosen_audio.map(|stream| (stream.start_us, stream.duration_us)),
    ];
    let file_start = input.start_us.unwrap_or(0);
    let ends = spans.iter().flatten().map(|(start, duration)| {
        Some(start.unwrap_or(file_start).saturating_sub(file_start) + (*duration)?)
    });
    let ends: Option<Vec<i64>> = ends.collect();
    // One that says nothing may be the longest: then only the file's own word counts.
    ends.and_then(|ends| ends.into_iter().max()).or(input.duration_us)
}

/// By how much the chosen sound outlasts the chosen video, in µs; 0 where that is unknown or not
/// so. A playlist tells its length by its pictures, so the last one has to be held.
pub(crate) fn outlasting_us(input: &MediaFacts) -> i64 {
    let picture = promised_us(input, true, false).filter(|_| input.chosen_video().is_some());
    let sound = promised_us(input, false, true).filter(|_| input.chosen_audio().is_some());
    picture.zip(sound).map_or(0, |(picture, sound)| (sound - picture).max(0))
}
