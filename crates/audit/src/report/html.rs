//! The report as one HTML file that needs nothing else.

use super::Report;
use super::json::percent;
use crate::findings::{Finding, Samples};
use crate::timeline::draw_svg;
use crate::timeline::escaped;
use crate::words::{clock, count, date, grouped, list, span};

/// A document with the timelines in it, no script, and nothing loaded from elsewhere.
pub fn html(report: &Report<'_>) -> String {
    let mut out = String::from(HEAD);
    let findings = &report.findings.findings;
    let total = findings.len() as u64 + report.findings.dropped;
    let verdict = match total {
        0 => "No findings: nothing in this history went wrong.".to_owned(),
        number => format!("{} in this history.", count(number, "finding", "findings")),
    };
    out.push_str(&format!("<h1>Diagnosis</h1><p class=\"verdict\">{verdict}</p>\n"));
    sums(&mut out, report);
    let mut resource = None;
    for finding in findings {
        if resource != Some(&finding.resource) {
            if resource.is_some() {
                out.push_str("</section>\n");
            }
            out.push_str(&format!("<section><h2>{}</h2>\n", escaped(&finding.resource)));
            if let Some(timeline) = report.timeline(&finding.resource) {
                out.push_str(&format!("<figure>{}</figure>\n", draw_svg(timeline, 1_080)));
            }
            resource = Some(&finding.resource);
        }
        tell(&mut out, finding, report);
    }
    if resource.is_some() {
        out.push_str("</section>\n");
    }
    ttl(&mut out, report);
    reading(&mut out, report);
    out.push_str("</main></body></html>\n");
    out
}

const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Diagnosis</title>\
<style>:root{color-scheme:light dark}body{margin:0;background:#f5f7fa;color:#1f2933;font:15px/1.5 system-ui,sans-serif}\
main{max-width:1120px;margin:0 auto;padding:24px}h1{margin:0 0 4px}h2{margin:28px 0 8px}\
.verdict{font-size:17px;margin:0 0 20px}section,.card{background:#fff;border:1px solid #e4e7eb;\
border-radius:8px;padding:4px 20px 16px;margin:0 0 20px}figure{margin:0 0 12px;overflow-x:auto}\
svg{max-width:100%;height:auto}dl.sums{display:grid;gap:12px;margin:12px 0 0;\
grid-template-columns:repeat(auto-fill,minmax(170px,1fr))}dl.sums div{padding:8px 0}\
dt{color:#616e7c;font-size:13px}dd{margin:0;font-size:20px;font-weight:600}\
article{border-top:1px solid #e4e7eb;padding:12px 0}.kind{display:inline-block;padding:1px 8px;\
border-radius:10px;background:#ffe3e3;color:#911111;font-weight:600;font-size:13px;\
margin-right:8px}.facts,.place{color:#616e7c;font-size:13px}ol{list-style:none;margin:8px 0;\
padding:0}ol li{padding:1px 8px;border-left:3px solid #e4e7eb}ol li.mistake{background:#fff1f1;\
border-left-color:#ba2525;font-weight:600}time{font-variant-numeric:tabular-nums;color:#52606d;\
margin-right:10px}table{border-collapse:collapse}td,th{padding:3px 14px 3px 0;text-align:right}\
tr.best{background:#e3f9e5;font-weight:600}pre{white-space:pre-wrap;margin:2px 0 8px;\
color:#52606d}@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e4e7eb}\
section,.card{background:#161b22;border-color:#323f4b}article{border-color:#323f4b}\
dt,.facts,.place,time,pre{color:#9fb3c8}.kind{background:#5c1a1a;color:#ffbdbd}\
ol li{border-left-color:#323f4b}ol li.mistake{background:#3b1519;border-left-color:#f86a6a}\
tr.best{background:#123b33}}</style></head><body><main>\n";

fn sums(out: &mut String, report: &Report<'_>) {
    let summary = &report.findings.summary;
    let duplicate = format!(
        "{} ({:.2} %)",
        span(summary.duplicate_ms),
        percent(summary.duplicate_ms, summary.compute_ms)
    );
    let mut items: Vec<(&str, String)> = vec![
        ("entries", grouped(summary.events)),
        ("resources", grouped(summary.resources)),
        ("attempts", grouped(summary.attempts)),
        ("compute", span(summary.compute_ms)),
        ("duplicate compute", duplicate),
        ("effects landed", grouped(summary.effects_landed)),
        ("effects refused", grouped(summary.effects_refused)),
        ("recovered crashes", grouped(summary.recoveries.count())),
    ];
    let times = |samples: &Samples| {
        let (half, most) = (samples.quantile_ms(50)?, samples.quantile_ms(99)?);
        Some(format!("{} / {}", span(half), span(most)))
    };
    items.extend(times(&summary.recoveries).map(|text| ("recovery, p50 / p99", text)));
    items.extend(times(&summary.pauses).map(|text| ("pauses, p50 / p99", text)));
    out.push_str("<div class=\"card\"><dl class=\"sums\">\n");
    for (name, value) in items {
        out.push_str(&format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escaped(&value)));
    }
    out.push_str("</dl></div>\n");
}

fn tell(out: &mut String, finding: &Finding, report: &Report<'_>) {
    let cost = match finding.cost_ms {
        0 => String::new(),
        cost_ms => format!(" · cost {} of compute", span(cost_ms)),
    };
    out.push_str(&format!(
        "<article><p><span class=\"kind\">{}</span>{}</p><p class=\"facts\">{} · cause: {} ({}) · \
         {}{cost}</p><ol>\n",
        finding.kind.name(),
        escaped(&finding.headline),
        date(finding.at),
        finding.cause.name(),
        finding.confidence.name(),
        escaped(&list(&finding.workers)),
    ));
    for line in &finding.story {
        let class = if line.mistake { " class=\"mistake\"" } else { "" };
        let place = line.source.map_or(String::new(), |source| {
            let name = escaped(report.file_name(source));
            format!(" <span class=\"place\">{name}:{}</span>", source.line)
        });
        out.push_str(&format!(
            "<li{class}><time>{}</time>{}{place}</li>\n",
            clock(line.at),
            escaped(&line.text)
        ));
    }
    out.push_str(&format!(
        "</ol><p class=\"facts\">Prevented by: {}</p></article>\n",
        escaped(finding.prevented_by)
    ));
}

fn ttl(out: &mut String, report: &Report<'_>) {
    let Some(advice) = &report.findings.summary.ttl else { return };
    out.push_str(&format!(
        "<div class=\"card\"><h2>Suggested ttl: {}</h2><table><tr><th>ttl</th>\
         <th>a crash stalls</th><th>all of them</th><th>pauses past it</th>\
         <th>compute wasted</th></tr>\n",
        span(advice.suggested_ms)
    ));
    for choice in &advice.choices {
        let best = choice.ttl_ms == advice.suggested_ms;
        out.push_str(&format!(
            "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            if best { " class=\"best\"" } else { "" },
            span(choice.ttl_ms),
            span(choice.stall_ms),
            span(choice.stalls_ms),
            grouped(choice.pauses_lost),
            span(choice.wasted_ms)
        ));
    }
    out.push_str("</table></div>\n");
}

fn reading(out: &mut String, report: &Report<'_>) {
    let unreadable = report.unreadable_lines();
    out.push_str("<div class=\"card\"><h2>Files</h2>\n");
    for file in report.files {
        let clock = file.skew.filter(|_| report.files.len() > 1).map_or(String::new(), |skew| {
            format!("; clock corrected by {} ms ({})", skew.offset_ms, skew.sureness.name())
        });
        out.push_str(&format!(
            "<p>{}: {}, {} unreadable{clock}</p>\n",
            escaped(&file.name),
            count(file.tally.lines, "line", "lines"),
            grouped(file.tally.unreadable_lines)
        ));
        for line in &file.tally.unreadable {
            out.push_str(&format!(
                "<p class=\"facts\">line {}: {}</p><pre>{}</pre>\n",
                line.source.line,
                escaped(&line.why),
                escaped(&line.text)
            ));
        }
    }
    if unreadable > 0 {
        let number = count(unreadable, "line", "lines");
        out.push_str(&format!("<p class=\"facts\">{number} could not be read in all.</p>\n"));
    }
    out.push_str("</div>\n");
}
