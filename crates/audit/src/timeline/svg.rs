//! A timeline as SVG.

use palisade_core::Timestamp;

use super::axis::ticks;
use super::{Lane, Mark, Sign, Stretch, Timeline, WindowEnd, short_names};
use crate::words::{clock, date, span};

const LANE_HEIGHT: u64 = 46;
const TOP: u64 = 64;
const LEFT: u64 = 150;
const RIGHT: u64 = 30;
const LEGEND_ROW: u64 = 22;
/// Labels this near to each other become one.
const SHARED_LABEL: u64 = 14;
/// The longest name that fits left of the lanes, in characters.
const NAME_MAX: usize = 19;
/// A letter's width at the size of labels, in tenths of a unit.
const LETTER_TENTHS: u64 = 62;

/// The picture as an SVG document, `width` units wide (600 at least).
pub fn draw_svg(timeline: &Timeline, width: u64) -> String {
    let width = width.max(600);
    let lanes = timeline.lanes.len() as u64;
    let bottom = TOP + lanes * LANE_HEIGHT;
    let mut legend = String::new();
    let rows = draw_legend(&mut legend, bottom + 24, width);
    let height = bottom + 20 + rows * LEGEND_ROW;
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
    // Before the lanes, so that their labels stay legible.
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
    let names = short_names(&timeline.lanes.iter().collect::<Vec<_>>(), NAME_MAX);
    for (index, lane) in timeline.lanes.iter().enumerate() {
        draw_name(&mut out, &names[index], index as u64, width);
        draw_lane(&mut out, lane, index as u64, &scale);
    }
    out.push_str(&legend);
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

/// A reader's dark screen gets the same picture: each colour is another's place there.
const DEFINITIONS: &str = "<defs><style>@media (prefers-color-scheme:dark){\
svg [fill='#ffffff']{fill:#161b22}svg [stroke='#ffffff']{stroke:#161b22}\
svg [fill='#1f2933']{fill:#e4e7eb}svg [stroke='#1f2933']{stroke:#e4e7eb}\
svg [fill='#52606d'],svg [fill='#7b8794']{fill:#9fb3c8}svg [stroke='#52606d']{stroke:#9fb3c8}\
svg [stroke='#e4e7eb']{stroke:#323f4b}svg [fill='#8eedc7']{fill:#147d64}\
svg [fill='#e3f9e5']{fill:#123b33}svg [fill='#0c6b58']{fill:#8eedc7}\
svg [stroke='#0c6b58']{stroke:#8eedc7}svg [stroke='#3f9142']{stroke:#c1f2c7}\
svg [fill='#0b69a3']{fill:#47a3f3}svg [stroke='#05606e']{stroke:#62d2e0}\
svg [fill='#8719e0']{fill:#cf9ff5}svg [stroke='#8719e0']{stroke:#cf9ff5}\
svg [fill='#ba2525']{fill:#f86a6a}svg [fill='#fff3c4']{fill:#5c4813}}</style>\
<pattern id=\"pause\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff3c4\"/>\
<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#de911d\" stroke-width=\"2\"/></pattern>\
<marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" markerWidth=\"7\" \
markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#52606d\"/></marker>\
</defs>\n";

fn draw_name(out: &mut String, name: &str, index: u64, width: u64) {
    let y = middle(index);
    let edge = TOP + index * LANE_HEIGHT - 6;
    if index.is_multiple_of(2) {
        out.push_str(&format!(
            "<rect x=\"0\" y=\"{edge}\" width=\"{width}\" height=\"{LANE_HEIGHT}\" \
             fill=\"#1f2933\" fill-opacity=\"0.03\"/>\n"
        ));
    }
    out.push_str(&format!(
        "<text x=\"16\" y=\"{}\" fill=\"#1f2933\">{}</text>\n",
        y + 4,
        escaped(name),
    ));
}

fn draw_lane(out: &mut String, lane: &Lane, index: u64, scale: &Scale) {
    let y = middle(index);
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
    for wait in &lane.waits {
        let (from, to) = (scale.x(wait.from), scale.x(wait.to));
        out.push_str(&format!(
            "<g><title>waiting {} to {}</title>{}</g>\n",
            clock(wait.from),
            clock(wait.to),
            waiting(from, to, y)
        ));
    }
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
    let shape = mark_shape(mark.sign, x, y);
    out.push_str(&format!("<g><title>{}</title>{shape}</g>\n", escaped(&about(mark))));
}

fn mark_shape(sign: Sign, x: u64, y: u64) -> String {
    match sign {
        Sign::Work => tick(x, y, 2, "#3f9142", 1),
        Sign::Denied => {
            format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"2.5\" fill=\"none\" stroke=\"#9aa5b1\"/>")
        }
        Sign::Renewed => tick(x, y, 8, "#0c6b58", 2),
        Sign::Released => tick(x, y, 11, "#0c6b58", 2),
        // Beside its place, where the last effect usually stands.
        Sign::Completed => format!(
            "<path d=\"M{} {y} l3 4 l6 -9\" fill=\"none\" stroke=\"#05606e\" \
             stroke-width=\"2.2\"/>",
            x + 10
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
        Sign::Granted => format!("<path d=\"M{x} {} v22 l7 -11 z\" fill=\"#0c6b58\"/>", y - 11),
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
    }
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

fn waiting(from: u64, to: u64, y: u64) -> String {
    format!(
        "<line x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\" stroke=\"#7b8794\" \
         stroke-width=\"1.5\" stroke-dasharray=\"2 4\"/>"
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
    format!("<path d=\"M{x} {} l8 15 h-16 z\" fill=\"{colour}\" stroke=\"#ffffff\"/>", y - 9)
}

/// Tokens and kinds of effects under the bar, as far as they do not run into each other.
fn draw_labels(out: &mut String, lane: &Lane, scale: &Scale, y: u64) {
    let mut labels: Vec<(u64, Sign, String)> = Vec::new();
    for mark in lane.marks.iter().filter(|mark| mark.sign >= Sign::Granted) {
        let token = mark.token.map(|token| format!("#{token}"));
        let text: Vec<String> = mark.label.clone().into_iter().chain(token).collect();
        let (x, text) = (scale.x(mark.at), text.join(" "));
        match labels.last_mut() {
            _ if text.is_empty() => {}
            // Effects at nearly one place share a label.
            Some((at, sign, known)) if *sign == mark.sign && x - *at <= SHARED_LABEL => {
                if !known.split(", ").any(|known| known == text) {
                    known.push_str(", ");
                    known.push_str(&text);
                }
            }
            _ => labels.push((x, mark.sign, text)),
        }
    }
    let mut free_from = 0;
    for (x, sign, text) in labels {
        let half = text.chars().count() as u64 * LETTER_TENTHS / 20;
        let x = x.max(LEFT + half).min(LEFT + scale.width + RIGHT - half - 2);
        if x - half < free_from {
            continue;
        }
        free_from = x + half + 6;
        let colour = match sign {
            Sign::Refused => "#8719e0",
            Sign::LandedLate => "#ba2525",
            _ => "#52606d",
        };
        out.push_str(&format!(
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10.5\" \
             stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\" \
             fill=\"{colour}\">{}</text>\n",
            y + 22,
            escaped(&text)
        ));
    }
}

/// A shape that is drawn for the legend around a point.
type Shape = fn(u64, u64) -> String;

/// What the shapes mean, in rows as wide as the picture; answers how many rows there are.
fn draw_legend(out: &mut String, top: u64, width: u64) -> u64 {
    let items: [(Shape, &str); 12] = [
        (|x, y| sample(x, y, "fill=\"#8eedc7\" stroke=\"#0c6b58\""), "lease"),
        (
            |x, y| {
                let dashes = "stroke-dasharray=\"3 2\"";
                sample(x, y, &format!("fill=\"#e3f9e5\" stroke=\"#0c6b58\" {dashes}"))
            },
            "no sign of life",
        ),
        (|x, y| tick(x, y, 6, "#0c6b58", 2), "renewed"),
        (|x, y| sample(x, y, "fill=\"url(#pause)\""), "pause"),
        (|x, y| sample(x, y, "fill=\"#f86a6a\""), "at work without a lease"),
        (|x, y| mark_shape(Sign::Expired, x, y), "ran out"),
        (|x, y| mark_shape(Sign::RenewFailed, x, y), "renewal failed"),
        (|x, y| mark_shape(Sign::Denied, x, y), "denied"),
        (|x, y| waiting(x - 9, x + 9, y), "waiting"),
        (|x, y| mark_shape(Sign::Landed, x, y), "effect landed"),
        (|x, y| mark_shape(Sign::LandedLate, x, y), "landed too late"),
        (|x, y| mark_shape(Sign::Refused, x, y), "refused"),
    ];
    let (mut x, mut row) = (24, 0);
    for (shape, text) in items {
        let length = 38 + text.len() as u64 * LETTER_TENTHS / 10;
        if x + length > width {
            (x, row) = (24, row + 1);
        }
        let y = top + row * LEGEND_ROW;
        out.push_str(&format!(
            "{}<text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"#52606d\">{text}</text>\n",
            shape(x, y),
            x + 14,
            y + 4
        ));
        x += length;
    }
    row + 1
}

fn sample(x: u64, y: u64, fill: &str) -> String {
    format!("<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"9\" {fill}/>", x - 9, y - 5)
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
