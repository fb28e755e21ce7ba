//! A timeline as SVG.

use palisade_core::Timestamp;

use super::axis::ticks;
use super::{Lane, Mark, Sign, Stretch, Timeline, WindowEnd};
use crate::words::{clock, date, span};

const LANE_HEIGHT: u64 = 46;
const TOP: u64 = 64;
const LEFT: u64 = 150;
const RIGHT: u64 = 30;
const LEGEND_HEIGHT: u64 = 44;
/// A letter's width at the size of labels, in tenths of a unit.
const LETTER_TENTHS: u64 = 62;

/// The picture as an SVG document, `width` units wide (600 at least).
pub fn draw_svg(timeline: &Timeline, width: u64) -> String {
    let width = width.max(600);
    let lanes = timeline.lanes.len() as u64;
    let bottom = TOP + lanes * LANE_HEIGHT;
    let height = bottom + LEGEND_HEIGHT;
    let scale = Scale { stretch: timeline.stretch, width: width - LEFT - RIGHT };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n"
    );
    out.push_str(&format!("<title>Timeline of {}</title>\n", escaped(&timeline.resource)));
    out.push_str(DEFINITIONS);
    out.push_str(&format!("<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"));
    let length = span(timeline.stretch.to.since_ms(timeline.stretch.from));
    out.push_str(&format!(
        "<text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#1f2933\">{}</text>\
         <text x=\"{}\" y=\"24\" text-anchor=\"end\" fill=\"#7b8794\">{} UTC, {length}</text>\n",
        escaped(&timeline.resource),
        width - 16,
        date(timeline.stretch.from),
    ));
    for (at, label) in ticks(timeline.stretch, usize::try_from(scale.width / 90).unwrap_or(8)) {
        let x = scale.x(at);
        out.push_str(&format!(
            "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#e4e7eb\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" \
             fill=\"#7b8794\">{label}</text>\n",
            TOP - 10,
            TOP - 16,
        ));
    }
    for (index, lane) in timeline.lanes.iter().enumerate() {
        draw_lane(&mut out, lane, index as u64, &scale, width);
    }
    for takeover in &timeline.takeovers {
        let x = scale.x(takeover.at);
        let (from, to) = (takeover.from_lane as u64, takeover.to_lane as u64);
        let (y1, y2) = if from < to {
            (middle(from) + 8, middle(to) - 13)
        } else {
            (middle(from).saturating_sub(8), middle(to) + 13)
        };
        out.push_str(&format!(
            "<line x1=\"{x}\" y1=\"{y1}\" x2=\"{x}\" y2=\"{y2}\" stroke=\"#52606d\" \
             stroke-width=\"1.2\" stroke-dasharray=\"3 3\" marker-end=\"url(#arrow)\"/>\n"
        ));
    }
    draw_legend(&mut out, bottom + 26);
    out.push_str("</svg>\n");
    out
}

/// Where instants lie.
struct Scale {
    stretch: Stretch,
    width: u64,
}

impl Scale {
    fn x(&self, at: Timestamp) -> u64 {
        let length_ms = u128::from(self.stretch.to.since_ms(self.stretch.from).max(1));
        let offset_ms = u128::from(at.since_ms(self.stretch.from)).min(length_ms);
        LEFT + u64::try_from(offset_ms * u128::from(self.width) / length_ms).unwrap_or(0)
    }
}

const fn middle(lane: u64) -> u64 {
    TOP + lane * LANE_HEIGHT + 15
}

const DEFINITIONS: &str = "<defs>\
<pattern id=\"pause\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff3c4\"/>\
<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#de911d\" stroke-width=\"2\"/></pattern>\
<marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" markerWidth=\"7\" \
markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#52606d\"/></marker>\
</defs>\n";

fn draw_lane(out: &mut String, lane: &Lane, index: u64, scale: &Scale, width: u64) {
    let y = middle(index);
    let edge = TOP + index * LANE_HEIGHT - 6;
    if index % 2 == 0 {
        out.push_str(&format!(
            "<rect x=\"0\" y=\"{edge}\" width=\"{width}\" height=\"{LANE_HEIGHT}\" \
             fill=\"#1f2933\" fill-opacity=\"0.03\"/>\n"
        ));
    }
    out.push_str(&format!(
        "<text x=\"16\" y=\"{}\" fill=\"#1f2933\">{}</text>\n",
        y + 4,
        escaped(&shortened(&lane.worker)),
    ));
    let bar = |out: &mut String, part: Stretch, half: u64, fill: &str, about: &str| {
        let (from, to) = (scale.x(part.from), scale.x(part.to));
        out.push_str(&format!(
            "<rect x=\"{from}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" {fill}>\
             <title>{about} {} to {}</title></rect>\n",
            y - half,
            (to - from).max(2),
            half * 2,
            clock(part.from),
            clock(part.to)
        ));
    };
    for window in &lane.windows {
        let fill = "fill=\"#8eedc7\" stroke=\"#0c6b58\" stroke-width=\"0.8\"";
        let silent = "fill=\"#e3f9e5\" stroke=\"#0c6b58\" stroke-width=\"0.8\" \
                      stroke-dasharray=\"3 2\"";
        bar(out, window.stretch, 8, silent, "lease, but no sign of life");
        let lived = Stretch { from: window.stretch.from, to: window.last_sign };
        bar(out, lived, 8, fill, "lease");
        if window.ended == WindowEnd::Cut {
            let x = scale.x(window.stretch.to);
            out.push_str(&format!(
                "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{}\" stroke=\"#ba2525\" \
                 stroke-width=\"2\"><title>cut short</title></line>\n",
                y - 11,
                y + 11
            ));
        }
    }
    for trespass in &lane.trespasses {
        bar(out, *trespass, 4, "fill=\"#f86a6a\"", "at work without a lease");
    }
    for pause in &lane.pauses {
        bar(out, *pause, 6, "fill=\"url(#pause)\" fill-opacity=\"0.9\"", "pause");
    }
    for mark in &lane.marks {
        draw_mark(out, mark, scale.x(mark.at), y);
    }
    draw_labels(out, lane, scale, y);
}

fn draw_mark(out: &mut String, mark: &Mark, x: u64, y: u64) {
    let shape = match mark.sign {
        Sign::Work => tick(x, y, 2, "#3f9142", 1),
        Sign::Denied => {
            format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"2.5\" fill=\"none\" stroke=\"#9aa5b1\"/>")
        }
        Sign::Renewed => tick(x, y, 8, "#0c6b58", 2),
        Sign::Released => tick(x, y, 11, "#0c6b58", 2),
        Sign::Completed => format!(
            "<path d=\"M{} {y} l3 4 l6 -8\" fill=\"none\" stroke=\"#05606e\" \
             stroke-width=\"2.4\"/>",
            x.saturating_sub(4)
        ),
        Sign::RenewFailed => format!(
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"700\" font-size=\"15\" \
             fill=\"#cb6e17\">!</text>",
            y + 5
        ),
        Sign::Exited => cross(x, y, 6, "#1f2933"),
        Sign::Expired => format!(
            "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{}\" stroke=\"#cb6e17\" \
             stroke-width=\"2\" stroke-dasharray=\"2 2\"/>",
            y - 12,
            y + 12
        ),
        Sign::Granted => format!(
            "<path d=\"M{x} {} v22 l7 -11 z\" fill=\"#0c6b58\"/>",
            y - 11
        ),
        Sign::Landed => triangle(x, y, "#0b69a3"),
        Sign::LandedLate => triangle(x, y, "#ba2525"),
        Sign::Refused => format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"7\" fill=\"#ffffff\" stroke=\"#8719e0\" \
             stroke-width=\"2\"/><line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" \
             stroke=\"#8719e0\" stroke-width=\"2\"/>",
            x - 5,
            y - 5,
            x + 5,
            y + 5
        ),
    };
    out.push_str(&format!("<g><title>{}</title>{shape}</g>\n", escaped(&about(mark))));
}

fn about(mark: &Mark) -> String {
    let token = mark.token.map_or(String::new(), |token| format!(", token {token}"));
    let label = mark.label.as_deref().map_or(String::new(), |label| format!(" ({label})"));
    format!("{}{label} {}{token}", name(mark.sign), clock(mark.at))
}

const fn name(sign: Sign) -> &'static str {
    match sign {
        Sign::Work => "at work",
        Sign::Denied => "denied",
        Sign::Renewed => "renewed",
        Sign::Released => "released",
        Sign::Completed => "completed",
        Sign::RenewFailed => "renewal failed",
        Sign::Exited => "process ended",
        Sign::Expired => "lease ran out",
        Sign::Granted => "granted",
        Sign::Landed => "effect landed",
        Sign::Refused => "effect refused",
        Sign::LandedLate => "landed too late",
    }
}

fn tick(x: u64, y: u64, half: u64, colour: &str, width: u64) -> String {
    format!(
        "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{}\" stroke=\"{colour}\" \
         stroke-width=\"{width}\"/>",
        y - half,
        y + half
    )
}

fn cross(x: u64, y: u64, half: u64, colour: &str) -> String {
    format!(
        "<path d=\"M{} {} l{2} {2} m0 -{2} l-{2} {2}\" stroke=\"{colour}\" stroke-width=\"2.4\"/>",
        x - half,
        y - half,
        half * 2
    )
}

fn triangle(x: u64, y: u64, colour: &str) -> String {
    format!(
        "<path d=\"M{x} {} l8 15 h-16 z\" fill=\"{colour}\" stroke=\"#ffffff\"/>",
        y - 9
    )
}

/// Tokens and kinds of effects under the bar, as far as they do not run into each other.
fn draw_labels(out: &mut String, lane: &Lane, scale: &Scale, y: u64) {
    let mut free_from = 0;
    for mark in lane.marks.iter().filter(|mark| mark.sign >= Sign::Granted) {
        let token = mark.token.map(|token| format!("#{token}"));
        let text: Vec<String> = mark.label.clone().into_iter().chain(token).collect();
        if text.is_empty() {
            continue;
        }
        let text = text.join(" ");
        let half = text.chars().count() as u64 * LETTER_TENTHS / 20;
        let x = scale.x(mark.at).max(LEFT + half).min(LEFT + scale.width + RIGHT - half - 2);
        if x - half < free_from {
            continue;
        }
        free_from = x + half + 6;
        let colour = match mark.sign {
            Sign::Refused => "#8719e0",
            Sign::LandedLate => "#ba2525",
            _ => "#52606d",
        };
        out.push_str(&format!(
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10.5\" \
             fill=\"{colour}\">{}</text>\n",
            y + 22,
            escaped(&text)
        ));
    }
}

fn draw_legend(out: &mut String, y: u64) {
    let mut x = 16;
    let mut item = |shape: String, text: &str| {
        out.push_str(&format!(
            "{shape}<text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"#52606d\">{text}</text>\n",
            x + 14,
            y + 4
        ));
        x += 24 + text.len() as u64 * LETTER_TENTHS / 10;
        x
    };
    let bar = |x: u64, fill: &str| {
        format!("<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"9\" {fill}/>", x - 6, y - 5)
    };
    let mut next = item(bar(16, "fill=\"#8eedc7\" stroke=\"#0c6b58\""), "lease");
    next = item(tick(next + 4, y, 6, "#0c6b58", 2), "renewed");
    next = item(bar(next, "fill=\"url(#pause)\""), "pause");
    next = item(bar(next, "fill=\"#f86a6a\""), "at work without a lease");
    next = item(
        format!(
            "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#cb6e17\" \
             stroke-width=\"2\" stroke-dasharray=\"2 2\"/>",
            next + 4,
            y - 8,
            y + 8
        ),
        "ran out",
    );
    next = item(triangle(next + 2, y, "#0b69a3"), "effect landed");
    next = item(triangle(next + 2, y, "#ba2525"), "landed too late");
    item(
        format!(
            "<circle cx=\"{}\" cy=\"{y}\" r=\"5\" fill=\"none\" stroke=\"#8719e0\" \
             stroke-width=\"2\"/>",
            next + 2
        ),
        "refused",
    );
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 18 {
        return text.to_owned();
    }
    let tail: Vec<char> = text.chars().rev().take(17).collect();
    format!("…{}", tail.into_iter().rev().collect::<String>())
}

/// Text that is safe within markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            character if character.is_control() => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}
