//! A timeline in a terminal.

use super::axis::{place, ticks};
use super::{Lane, Mark, Sign, Stretch, Style, Timeline, WindowEnd, short_names};
use crate::words::span;

/// The longest that a worker's name may be, in columns.
const NAME_MAX: usize = 18;
/// More lanes than this are not drawn; who was only denied goes first.
const LANES_MAX: usize = 40;

/// What stands in a column, in the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ink {
    Nothing,
    Wait,
    Silent,
    Lease,
    Trespass,
    Pause,
    Sign(Sign),
}

const fn glyph(ink: Ink) -> (char, &'static str, &'static str) {
    match ink {
        Ink::Nothing => (' ', "", ""),
        Ink::Wait => ('╌', "2", "waiting"),
        Ink::Silent => ('┄', "2;32", "lease, but no sign of life"),
        Ink::Lease => ('━', "32", "lease"),
        Ink::Trespass => ('~', "31", "at work without a lease"),
        Ink::Pause => ('·', "33", "pause"),
        Ink::Sign(Sign::Work) => ('━', "32", ""),
        Ink::Sign(Sign::Denied) => ('o', "2", "denied"),
        Ink::Sign(Sign::Renewed) => ('┿', "32", "renewed"),
        Ink::Sign(Sign::Released) => ('┫', "32", "released"),
        Ink::Sign(Sign::Completed) => ('✓', "1;32", "completed"),
        Ink::Sign(Sign::RenewFailed) => ('!', "1;33", "renewal failed"),
        Ink::Sign(Sign::Exited) => ('†', "1;31", "process ended"),
        Ink::Sign(Sign::Expired) => ('╳', "1;33", "lease ran out"),
        Ink::Sign(Sign::Granted) => ('┣', "1;32", "granted"),
        Ink::Sign(Sign::Landed) => ('▲', "1;36", "effect landed"),
        Ink::Sign(Sign::Refused) => ('⊘', "1;35", "effect refused"),
        Ink::Sign(Sign::LandedLate) => ('▼', "1;31", "effect landed too late"),
    }
}

/// The picture, a lane to a line, with a line of labels under lanes that have effects.
pub fn draw_text(timeline: &Timeline, style: Style) -> String {
    let lanes = shown_lanes(timeline);
    let names = short_names(&lanes, NAME_MAX);
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let name_width = longest.clamp(4, NAME_MAX);
    let width = style.width.max(60) - name_width - 4;
    let mut out = String::new();
    out.push_str(&axis(timeline.stretch, name_width, width, style));
    let mut used: Vec<Ink> = Vec::new();
    for (lane, name) in lanes.iter().zip(&names) {
        let inks = inks(lane, timeline.stretch, width);
        for ink in &inks {
            if !used.contains(ink) {
                used.push(*ink);
            }
        }
        out.push_str(&format!("  {name:<name_width$}  {}\n", painted(&inks, style)));
        if let Some(labels) = labels(lane, timeline.stretch, width) {
            out.push_str(&format!("  {:<name_width$}  {}\n", "", painted_labels(&labels, style)));
        }
    }
    let hidden = timeline.lanes.len() - lanes.len();
    if hidden > 0 {
        out.push_str(&format!("  … and {hidden} more workers\n"));
    }
    if timeline.left_out > 0 {
        out.push_str(&format!("  … and {} more entries\n", timeline.left_out));
    }
    out.push_str(&legend(used, style));
    out
}

/// At most [`LANES_MAX`] lanes: those that ever held it first.
fn shown_lanes(timeline: &Timeline) -> Vec<&Lane> {
    let holders = timeline.lanes.iter().filter(|lane| !lane.windows.is_empty()).count();
    let mut room = LANES_MAX.saturating_sub(holders);
    let fits = |lane: &&Lane| {
        if !lane.windows.is_empty() {
            return true;
        }
        room = room.saturating_sub(1);
        room > 0
    };
    timeline.lanes.iter().filter(fits).take(LANES_MAX).collect()
}

fn axis(stretch: Stretch, name_width: usize, width: usize, style: Style) -> String {
    let mut labels = vec![' '; width];
    let mut marks = vec!['─'; width];
    for (at, label) in ticks(stretch, width / 12) {
        let column = place(at, stretch, width);
        marks[column] = '┴';
        let start = column.min(width.saturating_sub(label.len()));
        if labels[start.saturating_sub(1)..start + label.len()].iter().all(|c| *c == ' ') {
            for (offset, character) in label.chars().enumerate() {
                labels[start + offset] = character;
            }
        }
    }
    let labels: String = labels.into_iter().collect();
    let marks: String = marks.into_iter().collect();
    let length = span(stretch.to.since_ms(stretch.from));
    let length = if length.len() <= name_width { length } else { String::new() };
    format!(
        "  {}  {}\n  {:<name_width$}  {}\n",
        paint(&format!("{length:<name_width$}"), "2", style),
        paint(labels.trim_end(), "2", style),
        "",
        paint(&marks, "2", style)
    )
}

fn inks(lane: &Lane, stretch: Stretch, width: usize) -> Vec<Ink> {
    let mut inks = vec![Ink::Nothing; width];
    let mut fill = |part: Stretch, ink: Ink| {
        let (from, to) = (place(part.from, stretch, width), place(part.to, stretch, width));
        for column in &mut inks[from..=to] {
            *column = (*column).max(ink);
        }
    };
    for wait in &lane.waits {
        fill(*wait, Ink::Wait);
    }
    for window in &lane.windows {
        fill(window.stretch, Ink::Silent);
        fill(Stretch { from: window.stretch.from, to: window.last_sign }, Ink::Lease);
    }
    for trespass in &lane.trespasses {
        fill(*trespass, Ink::Trespass);
    }
    for pause in &lane.pauses {
        fill(*pause, Ink::Pause);
    }
    for mark in lane.marks.iter().filter(|mark| mark.sign != Sign::Work) {
        let column = place(mark.at, stretch, width);
        inks[column] = inks[column].max(Ink::Sign(mark.sign));
    }
    // Work shows as itself where nothing else does: by somebody who was never granted anything.
    for mark in lane.marks.iter().filter(|mark| mark.sign == Sign::Work) {
        let column = place(mark.at, stretch, width);
        let under_lease = lane.windows.iter().any(|window| {
            window.stretch.from <= mark.at
                && (mark.at <= window.stretch.to || window.ended == WindowEnd::Open)
        });
        if inks[column] == Ink::Nothing && !under_lease {
            inks[column] = Ink::Trespass;
        }
    }
    inks
}

/// Labels under the effects and grants of a lane, where there is room.
fn labels(lane: &Lane, stretch: Stretch, width: usize) -> Option<Vec<(usize, String, Sign)>> {
    let mut wanted: Vec<(usize, String, Sign)> = Vec::new();
    let effects = |mark: &&Mark| mark.sign >= Sign::Landed;
    let granted = |mark: &&Mark| mark.sign == Sign::Granted && mark.token.is_some();
    let mut marks: Vec<&Mark> = lane.marks.iter().filter(effects).collect();
    marks.extend(lane.marks.iter().filter(granted));
    for mark in marks {
        let column = place(mark.at, stretch, width);
        let token = mark.token.map(|token| format!("#{token}"));
        let text: Vec<String> = mark.label.clone().into_iter().chain(token).collect();
        if text.is_empty() {
            continue;
        }
        let text = text.join(" ");
        // Several effects in one column share a label.
        if let Some(near) = wanted.iter_mut().find(|near| near.0 == column && near.2 == mark.sign) {
            if !near.1.split(", ").any(|known| known == text) {
                near.1 = format!("{}, {text}", near.1);
            }
            continue;
        }
        wanted.push((column, text, mark.sign));
    }
    let mut taken = vec![false; width];
    let mut placed: Vec<(usize, String, Sign)> = Vec::new();
    for (column, text, sign) in wanted {
        let length = text.chars().count();
        if length >= width {
            continue;
        }
        let start = column.min(width - length);
        let (from, to) = (start.saturating_sub(1), (start + length + 1).min(width));
        if taken[from..to].iter().any(|column| *column) {
            continue;
        }
        taken[start..start + length].fill(true);
        placed.push((start, text, sign));
    }
    placed.sort_by_key(|label| label.0);
    (!placed.is_empty()).then_some(placed)
}

fn painted(inks: &[Ink], style: Style) -> String {
    let mut out = String::new();
    let mut colour = "";
    let end = inks.iter().rposition(|ink| *ink != Ink::Nothing).map_or(0, |last| last + 1);
    for ink in &inks[..end] {
        let (character, wanted, _) = glyph(*ink);
        if style.colour && wanted != colour {
            out.push_str(&format!("\u{1b}[0m\u{1b}[{wanted}m"));
            colour = wanted;
        }
        out.push(character);
    }
    if style.colour {
        out.push_str("\u{1b}[0m");
    }
    out
}

fn painted_labels(labels: &[(usize, String, Sign)], style: Style) -> String {
    let mut out = String::new();
    let mut column = 0;
    for (start, text, sign) in labels {
        out.push_str(&" ".repeat(start - column));
        let (_, colour, _) = glyph(Ink::Sign(*sign));
        out.push_str(&paint(text, colour, style));
        column = start + text.chars().count();
    }
    out
}

fn legend(mut used: Vec<Ink>, style: Style) -> String {
    used.sort_unstable();
    let width = style.width.max(60);
    let mut out = String::new();
    let mut line = String::from(" ");
    let mut length = 1;
    for ink in used {
        let (character, colour, name) = glyph(ink);
        if name.is_empty() {
            continue;
        }
        let item_length = name.chars().count() + 4;
        if length + item_length > width {
            out.push_str(&format!("{line}\n"));
            line = String::from(" ");
            length = 1;
        }
        line.push_str(&format!(" {} {name} ", paint(&character.to_string(), colour, style)));
        length += item_length;
    }
    out.push_str(&format!("{}\n", line.trim_end()));
    out
}

fn paint(text: &str, colour: &str, style: Style) -> String {
    if style.colour && !colour.is_empty() && !text.is_empty() {
        format!("\u{1b}[{colour}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}
