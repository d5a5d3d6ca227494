//! A plan drawn for people, as plain text.
//!
//! Waves are columns from left to right where that fits; else they are blocks from top to bottom, and what a task
//! builds on stands behind it. A plan too large to be drawn is counted wave by wave. A dependency that others already
//! imply is not drawn: the order is the same without it. The same plan always gives the same lines, no line is wider
//! than asked, and how wide a letter is, the caller says.

mod grid;
mod layout;
mod route;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use max_team_core::plan::{Draft, Graph, WhenCondition};

pub use grid::{PlacedEdge, PlacedTask, PlanLayout, place};
use layout::{Layout, Spot};

/// Tasks that are drawn one by one; more of them are counted.
const DRAWN_TASKS_MAX: usize = 40;
/// Waves that are told; a plan can have a thousand.
const WAVES_MAX: usize = 60;
/// How wide ids may be, from the nicest to the one that may just fit.
const ID_WIDTHS: [usize; 3] = [64, 16, 10];
/// Marks a task that starts only after the user's approval.
const GATE: char = '◆';
/// Letters of a task's caption in a Mermaid diagram.
const CAPTION_MAX: usize = 60;

/// Draws a plan in lines of at most `width`. `marks` is the sign of a task's state, a blank for none; `measure` says
/// how many columns a text takes.
pub fn draw(
    draft: &Draft,
    graph: &Graph,
    marks: &dyn Fn(usize) -> char,
    width: usize,
    measure: fn(&str) -> usize,
) -> Vec<String> {
    let pen = Pen { draft, graph, marks, width, measure };
    if graph.len() > DRAWN_TASKS_MAX {
        return pen.counted();
    }
    pen.columns().unwrap_or_else(|| pen.blocks())
}

struct Pen<'a> {
    draft: &'a Draft,
    graph: &'a Graph,
    marks: &'a dyn Fn(usize) -> char,
    width: usize,
    measure: fn(&str) -> usize,
}

impl Pen<'_> {
    /// `[✓ design ada]`, with an id of at most that width.
    fn label(&self, task: usize, id_width: usize) -> String {
        let Some(known) = self.draft.tasks.get(task) else { return String::new() };
        let mut label = "[".to_owned();
        let mark = (self.marks)(task);
        if !mark.is_whitespace() && !mark.is_control() {
            label.extend([mark, ' ']);
        }
        label.push_str(&self.cut(&known.id, id_width));
        if !known.agent.is_empty() {
            label.push(' ');
            label.push_str(&known.agent);
        }
        if self.graph.is_gated(task) {
            label.extend([' ', GATE]);
        }
        label.push(']');
        label
    }

    /// A text in at most that many columns.
    fn cut(&self, text: &str, width: usize) -> String {
        if (self.measure)(text) <= width {
            return text.to_owned();
        }
        let room = width.saturating_sub((self.measure)("…"));
        let mut cut = String::new();
        for letter in text.chars() {
            cut.push(letter);
            if (self.measure)(&cut) > room {
                cut.pop();
                break;
            }
        }
        if width > 0 {
            cut.push('…');
        }
        cut
    }

    /// Waves side by side; `None` if they do not fit or their lines would meet where they must not.
    fn columns(&self) -> Option<Vec<String>> {
        let (layout, gaps) = Layout::drawn(self.graph)?;
        ID_WIDTHS.into_iter().find_map(|id_width| {
            let labels: Vec<String> = (0..self.graph.len()).map(|task| self.label(task, id_width)).collect();
            let lines = self.assemble(&layout, &gaps, &labels)?;
            // Two tasks that look the same are worse than one that is further down.
            let mut unique: Vec<&str> = labels.iter().map(String::as_str).collect();
            unique.sort_unstable();
            unique.dedup();
            (unique.len() == labels.len()).then_some(lines)
        })
    }

    fn assemble(&self, layout: &Layout, gaps: &[route::Gap], labels: &[String]) -> Option<Vec<String>> {
        let label = |spot: Spot| match spot {
            Spot::Task(task) => labels.get(task).map_or("", String::as_str),
            Spot::Pass(_) => "",
        };
        let mut lines = vec![String::new(); layout.height];
        let mut total = 0;
        for (at, column) in layout.columns.iter().enumerate() {
            let wide = column.iter().map(|node| (self.measure)(label(node.spot))).max().unwrap_or_default();
            let gap = gaps.get(at);
            total += wide + gap.map_or(0, route::Gap::width);
            if total > self.width {
                return None;
            }
            for (row, line) in lines.iter_mut().enumerate() {
                let node = column.iter().find(|node| node.row == row);
                let text = node.map_or("", |node| label(node.spot));
                let goes_on = gap.is_some_and(|gap| gap.leaves(row)) && node.is_some();
                let filler = if goes_on { '─' } else { ' ' };
                line.push_str(text);
                line.extend(std::iter::repeat_n(filler, wide.saturating_sub((self.measure)(text))));
                if let Some(gap) = gap {
                    line.push_str(&gap.text(row));
                }
            }
        }
        Some(lines.into_iter().map(|line| line.trim_end().to_owned()).collect())
    }

    /// Waves one below the other, each task with what it builds on.
    fn blocks(&self) -> Vec<String> {
        let needed = layout::reduced(self.graph);
        let digits = self.graph.waves().len().to_string().len();
        let mut lines = Vec::new();
        for (wave, tasks) in self.graph.waves().iter().enumerate() {
            for (place, task) in tasks.iter().enumerate() {
                let rail = match (place, place + 1 == tasks.len()) {
                    (0, true) => '─',
                    (0, false) => '┬',
                    (_, true) => '└',
                    (_, false) => '├',
                };
                let number = if place == 0 { (wave + 1).to_string() } else { String::new() };
                let mut line = format!("{number:>digits$} {rail}─ {}", self.label(*task, usize::MAX));
                let needs = needed.get(*task).map_or(&[][..], Vec::as_slice);
                self.push_needs(&mut line, needs);
                lines.push(self.cut(&line, self.width));
            }
        }
        lines
    }

    /// As many of the names as fit, and how many do not.
    fn push_needs(&self, line: &mut String, needs: &[usize]) {
        let names = || needs.iter().filter_map(|need| self.draft.tasks.get(*need)).map(|task| task.id.as_str());
        for shown in (1..=needs.len()).rev() {
            let mut whole = format!("{line} ◀─ {}", names().take(shown).collect::<Vec<_>>().join(", "));
            if shown < needs.len() {
                whole.push_str(&format!(" +{}", needs.len() - shown));
            }
            if (self.measure)(&whole) <= self.width || shown == 1 {
                *line = whole;
                return;
            }
        }
    }

    /// One line for each wave.
    fn counted(&self) -> Vec<String> {
        let waves = self.graph.waves();
        let mut lines: Vec<String> = waves
            .iter()
            .take(WAVES_MAX)
            .enumerate()
            .map(|(at, wave)| {
                let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
                for task in wave.iter().filter_map(|task| self.draft.tasks.get(*task)) {
                    *owners.entry(task.agent.as_str()).or_default() += 1;
                }
                let mut owners: Vec<(&str, usize)> = owners.into_iter().collect();
                owners.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
                let owners: Vec<String> = owners.into_iter().map(|(owner, count)| format!("{owner} {count}")).collect();
                let line = format!("wave {}: {} ({})", at + 1, tasks_words(wave.len()), owners.join(", "));
                self.cut(&line, self.width)
            })
            .collect();
        let rest: usize = waves.iter().skip(WAVES_MAX).map(Vec::len).sum();
        if rest > 0 {
            let line = format!("… {} more waves: {}", waves.len() - WAVES_MAX, tasks_words(rest));
            lines.push(self.cut(&line, self.width));
        }
        lines
    }
}

fn tasks_words(count: usize) -> String {
    format!("{count} {}", if count == 1 { "task" } else { "tasks" })
}

/// The whole plan as a Mermaid flow chart, with every dependency.
pub fn mermaid(draft: &Draft, graph: &Graph) -> String {
    let mut chart = "flowchart LR\n".to_owned();
    for (place, task) in draft.tasks.iter().enumerate() {
        let caption = if task.caption() == task.id { "" } else { task.caption() };
        let mut label = format!("{} · {}", plain(&task.id), plain(&task.agent));
        if !caption.is_empty() {
            label.push_str("<br/>");
            label.push_str(&plain(caption));
        }
        let (open, close) = if graph.is_gated(place) { ("{{", "}}") } else { ("[", "]") };
        let class = if task.skip { ":::skipped" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(chart, "  t{place}{open}\"{label}\"{close}{class}");
    }
    for place in 0..graph.len() {
        for need in graph.needs(place) {
            let arrow = match graph.condition(place) {
                Some((other, WhenCondition::Failed)) if other == *need => "-. failed .->",
                Some((other, WhenCondition::Ok)) if other == *need => "-- ok -->",
                _ => "-->",
            };
            let _ = writeln!(chart, "  t{need} {arrow} t{place}");
        }
    }
    if draft.tasks.iter().any(|task| task.skip) {
        chart.push_str("  classDef skipped stroke-dasharray: 4 4, opacity: 0.5\n");
    }
    chart
}

/// Text of a user or model inside a label: characters that would end the label or be markup become entities.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars().take(CAPTION_MAX) {
        match letter {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '[' | ']' | '{' | '}' | '*' | '_' => {
                let _ = write!(plain, "#{};", u32::from(letter));
            }
            letter if letter.is_control() => plain.push(' '),
            letter => plain.push(letter),
        }
    }
    if text.chars().nth(CAPTION_MAX).is_some() {
        plain.push('…');
    }
    plain
}
