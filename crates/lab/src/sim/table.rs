//! The report for people: rows, the sentence that the numbers support, and a picture.

use super::report::{DesignReport, Report};

/// The table's head.
pub const HEAD: [&str; 11] = [
    "design",
    "jobs",
    "stalled",
    "duplicate renders",
    "writes twice",
    "rows twice",
    "notified twice",
    "lost",
    "compute wasted",
    "recovery p50",
    "recovery p99",
];

impl Report {
    /// One row a design, in the order of [`HEAD`].
    pub fn rows(&self) -> Vec<Vec<String>> {
        self.designs.iter().map(row).collect()
    }

    /// The table as text, columns aligned.
    pub fn table(&self) -> String {
        let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
        lines.extend(self.rows());
        let width =
            |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or_default();
        let widths: Vec<_> = (0..HEAD.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// What the numbers support, and no more.
    pub fn sentence(&self) -> String {
        let clauses: Vec<_> = self.designs.iter().map(clause).collect();
        let mut text = format!("Under the same faults: {}.", clauses.join("; "));
        let ours = |one: &&DesignReport| one.is_held_to_it();
        let broken = self.designs.iter().filter(|one| !ours(one)).any(|one| !one.is_correct());
        let held = self.designs.iter().filter(ours).count();
        if !self.is_clean() || self.designs.iter().filter(ours).any(|one| !one.is_correct()) {
            text.push_str(" A design that is held to it broke its word: see the seeds above.");
        } else if held > 0 && broken {
            text.push_str(
                " Where effects were fenced, a failure of the lock cost compute, never correctness.",
            );
        } else if held > 0 {
            text.push_str(" Nothing was duplicated, lost or stalled.");
        }
        text
    }

    /// A bar chart: jobs stalled, effects duplicated, compute wasted, a row a design.
    pub fn svg(&self) -> String {
        let height = 70 + self.designs.len() * 58;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" \
             fill=\"white\"/>\n<text x=\"20\" y=\"28\" font-size=\"16\">The same jobs under the \
             same faults: what each design made of them</text>\n"
        );
        let most = |of: fn(&DesignReport) -> u64| self.designs.iter().map(of).max().unwrap_or(0);
        let (stalled_most, doubled_most) = (most(|one| one.stalled), most(DesignReport::doubled));
        for (index, one) in self.designs.iter().enumerate() {
            let top = 50 + index * 58;
            svg.push_str(&format!("<text x=\"20\" y=\"{}\">{}</text>\n", top + 24, one.design));
            let (stalled, doubled, wasted) = (one.stalled, one.doubled(), one.wasted_tenths());
            let bars = [
                (format!("{stalled} jobs stalled"), stalled, stalled_most, "#c0392b"),
                (format!("{doubled} effects doubled"), doubled, doubled_most, "#e67e22"),
                (
                    format!("{}.{} % of compute wasted", wasted / 10, wasted % 10),
                    wasted,
                    1_000,
                    "#7f8c8d",
                ),
            ];
            for (line, (what, value, most, colour)) in bars.into_iter().enumerate() {
                let y = top + line * 16;
                let width = (value * 420).checked_div(most).unwrap_or(0);
                svg.push_str(&format!(
                    "<rect x=\"150\" y=\"{y}\" width=\"{width}\" height=\"12\" fill=\"{colour}\"/>\
                     <text x=\"{}\" y=\"{}\" font-size=\"11\">{what}</text>\n",
                    158 + width,
                    y + 10
                ));
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn row(one: &DesignReport) -> Vec<String> {
    let effects = one.duplicate_effects;
    let seconds = |ms: Option<u64>| {
        ms.map_or_else(|| "never".to_owned(), |ms| format!("{}.{} s", ms / 1_000, ms % 1_000 / 100))
    };
    vec![
        one.design.clone(),
        one.jobs.to_string(),
        one.stalled.to_string(),
        one.duplicate_renders.to_string(),
        effects.write.to_string(),
        effects.database.to_string(),
        effects.notification.to_string(),
        one.lost.to_string(),
        format!("{:.1} %", one.wasted_percent),
        seconds(one.recovery_p50_ms),
        seconds(one.recovery_p99_ms),
    ]
}

fn clause(one: &DesignReport) -> String {
    let mut parts = Vec::new();
    if one.stalled > 0 {
        parts.push(format!("left {} of {} jobs stalled", one.stalled, one.jobs));
    }
    if one.doubled() > 0 {
        parts.push(format!("doubled {} effects", one.doubled()));
    }
    if one.lost > 0 {
        parts.push(format!("lost {}", one.lost));
    }
    if parts.is_empty() {
        parts.push("stalled, doubled and lost nothing".to_owned());
    }
    format!("{} {} and wasted {:.1} % of compute", one.design, parts.join(", "), one.wasted_percent)
}
