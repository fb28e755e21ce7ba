//! What a picture comes to: its size as shown, the size that fits, a constant rate.

use super::VideoStream;

/// The slowest constant frame rate, a second: below it the end of a clip could be told no better
/// than by a tenth of a second.
const RATE_MIN: u32 = 10;
/// The fastest that is believed without a second witness, and what is taken instead of one that
/// is only the resolution of a clock (browsers write ms).
const RATE_BELIEVED_MAX: u32 = 120;
const RATE_FALLBACK: u32 = 60;

impl VideoStream {
    /// Width and height as shown, in square pixels: each as a fraction over one denominator, so
    /// that nothing is rounded before its time.
    pub(crate) fn shown(&self) -> (u64, u64, u64) {
        let (horizontal, vertical) = self.pixel_shape;
        let width = u64::from(self.width) * u64::from(horizontal);
        let height = u64::from(self.height) * u64::from(vertical);
        let is_turned = (self.rotation.rem_euclid(180) - 90).abs() < 45;
        let (width, height) = if is_turned { (height, width) } else { (width, height) };
        (width, height, u64::from(vertical))
    }

    /// The size by which it fits: its shorter shown side at most `shorter_side_max`, never
    /// enlarged, the shown ratio kept, both sides even.
    pub fn fit(&self, shorter_side_max: u32) -> (u32, u32) {
        let (width, height, denominator) = self.shown();
        let shorter = width.min(height);
        let max = u64::from(shorter_side_max);
        let is_larger = shorter > max * denominator;
        let (numerator, denominator) = if is_larger { (max, shorter) } else { (1, denominator) };
        let even = |side: u64| {
            let side = u128::from(side) * u128::from(numerator);
            let double = 2 * u128::from(denominator);
            let halves = (side + u128::from(denominator)) / double;
            u32::try_from(halves.max(1) * 2).unwrap_or(u32::MAX - 1)
        };
        (even(width), even(height))
    }

    /// The constant frame rate for what is made of it. A constant rate shows the last picture of
    /// a slide show for as long as it is to be shown; one that is kept variable loses that.
    pub(crate) fn constant_rate(&self) -> (u32, u32) {
        let per_second = |(frames, seconds): (u32, u32)| f64::from(frames) / f64::from(seconds);
        let is_said = |rate: (u32, u32)| rate.0 > 0 && rate.1 > 0;
        if !is_said(self.base_rate) {
            return (RATE_FALLBACK, 1);
        }
        let base = per_second(self.base_rate);
        if base < f64::from(RATE_MIN) {
            // A multiple, so that each picture still begins on time.
            let (frames, seconds) = self.base_rate;
            let times = (u64::from(RATE_MIN) * u64::from(seconds)).div_ceil(u64::from(frames));
            let frames = u32::try_from(u64::from(frames) * times);
            return frames.map_or((RATE_MIN, 1), |frames| (frames, seconds));
        }
        let is_real = is_said(self.average_rate) && per_second(self.average_rate) * 1.5 > base;
        let believed = base <= f64::from(RATE_BELIEVED_MAX) || (is_real && base <= 480.0);
        if believed { self.base_rate } else { (RATE_FALLBACK, 1) }
    }
}
