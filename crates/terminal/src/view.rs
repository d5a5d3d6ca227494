//! The live rows: what is being written, what runs, what is asked, what is queued, the draft, the footer.
//!
//! [`view`] lays them out into the rows there are. When there is not enough room the draft and the question keep
//! theirs and the rest gives way. It reads the chat and changes nothing but how far things are scrolled.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::chat::{Chat, Hint};
use super::markdown;
use super::menu::MentionChoice;
use super::plan_panel::Extent;
use super::rows::{Group, Row, RowStyle, call, output};
use super::screen::View;
use super::slash;
use super::slash_output;
use super::text::{self, clean_line};
use super::transcript::Activity;
use max_team_workspace::format::short;
use max_team_workspace::format::{since, spent, tokens, whole_seconds};

/// Rows that a draft may take before it scrolls.
const DRAFT_ROWS_MAX: usize = 8;
/// Queued messages that are shown one by one.
const QUEUE_ROWS_MAX: usize = 6;
/// Running tools that are shown one by one.
const RUNNING_ROWS_MAX: usize = 4;
/// Rows that a plan at work keeps beside a question: an empty one, how far it is, and two tasks.
const BOARD_ROWS_MIN: usize = 4;
/// Members with one thing to do that are shown one by one.
const MEMBER_ROWS_MAX: usize = 6;
/// Columns of the working directory in the footer; with fewer it is left out.
const CWD_COLUMNS_MIN: usize = 8;
const CWD_COLUMNS_MAX: usize = 40;
/// What stands before the draft.
const PROMPT: &str = "> ";
/// Turns ten times a second.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The columns that the draft is wrapped to: the prompt stands before it, the cursor may stand behind it.
pub(super) fn draft_columns(columns: usize) -> usize {
    columns.saturating_sub(PROMPT.len() + 1)
}

/// Lays the live rows out. A question without room has no keys, so there is a place to write then, which takes a row.
pub(super) fn view(chat: &mut Chat, rows_max: usize, now_ms: i64) -> View {
    if let Some(pager) = chat.draw_pager(rows_max) {
        return pager;
    }
    chat.measure_anew();
    let whole = lay_out(chat, rows_max, now_ms);
    if chat.question_fits() { whole } else { lay_out(chat, rows_max, now_ms) }
}

fn lay_out(chat: &mut Chat, rows_max: usize, now_ms: i64) -> View {
    let look = chat.look();
    let (draft, cursor) = draft(chat, look, rows_max);
    let below = below(chat, look, rows_max.saturating_sub(draft.len() + 1));
    let status = status(chat, look, now_ms);
    let mut room = rows_max.saturating_sub(draft.len() + below.len() + status.len());
    let mut queue = queue(chat, look);
    queue.truncate(room);
    room -= queue.len();
    // A running plan keeps its rows while a question is open.
    let (plans, list) = (chat.session().plans(), chat.session().list());
    let runs = (plans.running().next().is_some() || list.is_open()) && chat.extent() != Extent::Hidden;
    let kept = if runs { BOARD_ROWS_MIN.min(room / 3) } else { 0 };
    let mut panel = panel(chat, look, room - kept);
    let is_hidden = panel.len() > room && !chat.question_fits();
    panel.truncate(room);
    room -= panel.len();
    // Where even this cannot be said in the question's place, it is said where others read that it waits.
    let id = chat.session().questions.first().map(|question| short(&question.id)).unwrap_or_default();
    let status = if is_hidden { enlarge(look, &id, status.len() + std::mem::take(&mut panel).len()) } else { status };
    let board = board(chat, look, room);
    room -= board.len();
    let above = above(chat, look, room);

    let mut lines = above;
    lines.extend(board);
    lines.extend(panel);
    lines.extend(status);
    lines.extend(queue);
    let first = lines.len();
    lines.extend(draft);
    lines.extend(below);
    let cursor = cursor.map(|(column, row)| (column, first + row));
    View { lines, cursor }
}

/// Says that the window is too small for a question, in at most so many rows.
fn enlarge(look: RowStyle, id: &str, rows: usize) -> Vec<Line<'static>> {
    let words = format!("⏸ {}", look.lang.enlarge_window(id));
    let mut lines = text::wrap(&[Span::styled(words, look.theme.warning())], look.columns);
    lines.truncate(rows);
    lines
}

/// The draft (or the comment, or the search), scrolled to the cursor.
fn draft(chat: &mut Chat, look: RowStyle, rows_max: usize) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
    let writes = chat.writes_answer() || !chat.question_has_focus();
    let prompt = if writes { look.theme.user() } else { look.theme.faint() };
    if let Some(search) = chat.search() {
        let label = format!("{}: {}", look.lang.search_history(), search.words);
        let column = text::width(&label);
        let hit = search.found.as_deref().map_or_else(|| look.lang.no_match().to_owned(), clean_line);
        let rest = text::cut(&format!("  {hit}"), look.columns.saturating_sub(column));
        let line = Line::from(vec![Span::styled(label, prompt), Span::styled(rest, look.theme.faint())]);
        return (vec![line], Some((column, 0)));
    }
    let empty = match chat.writes_answer() {
        true => chat.answer_placeholder().to_owned(),
        false => look.lang.placeholder(&clean_line(&chat.session().who)),
    };
    let editor = chat.focused_editor();
    if editor.is_empty() && !writes {
        // Letter keys answer now; an input line would suggest otherwise.
        return (Vec::new(), None);
    }
    if editor.is_empty() {
        let words = text::cut(&empty, look.columns.saturating_sub(PROMPT.len()));
        let line = Line::from(vec![Span::styled(PROMPT, prompt), Span::styled(words, look.theme.faint())]);
        return (vec![line], Some((PROMPT.len(), 0)));
    }
    let layout = editor.layout(draft_columns(look.columns));
    let most = DRAFT_ROWS_MAX.min(rows_max.saturating_sub(2)).max(1);
    let (row, column) = layout.cursor;
    let first = (row + 1).saturating_sub(most);
    let lines = layout.rows.iter().enumerate().skip(first).take(most).map(|(index, words)| {
        let sign = if index == 0 { PROMPT } else { "  " };
        Line::from(vec![Span::styled(sign, prompt), Span::raw(words.clone())])
    });
    let cursor = writes.then_some((PROMPT.len() + column, row - first));
    (lines.collect(), cursor)
}

/// What stands below the draft: completions, a hint, or the footer.
fn below(chat: &Chat, look: RowStyle, rows: usize) -> Vec<Line<'static>> {
    let entries = chat.completions();
    if !entries.is_empty() {
        let widest = entries.iter().map(|entry| entry.name.len() + entry.argument.len()).max().unwrap_or(0);
        let draw = |entry: &slash::HelpEntry| {
            let name = format!("  /{} {}", entry.name, entry.argument);
            let pad = " ".repeat((widest + 6).saturating_sub(name.len()));
            let about = text::cut(entry.about(look.lang), look.columns.saturating_sub(widest + 6));
            Line::from(vec![Span::raw(name), Span::raw(pad), Span::styled(about, look.theme.faint())])
        };
        return entries.iter().take(rows).map(draw).collect();
    }
    let choices = menu(chat, look, rows);
    if !choices.is_empty() {
        return choices;
    }
    if rows == 0 {
        return Vec::new();
    }
    let choose = look.lang.choose_first(chat.answer_keys());
    let words = match chat.hint() {
        Some(Hint::EscAgain) => look.lang.esc_again_clears(),
        Some(Hint::CtrlCAgain) => look.lang.ctrl_c_again_leaves(),
        // A word leaves a plan alone.
        Some(Hint::TeamGoesOn) if chat.session().plans().is_moving() => look.lang.stop_hint_long(),
        Some(Hint::TeamGoesOn) => look.lang.team_goes_on(),
        Some(Hint::AnotherQuestion) => look.lang.another_question(),
        Some(Hint::Choose) => &choose,
        // Its place says what to do, and needs the room.
        Some(Hint::Enlarge) | None if chat.is_question_hidden() => return Vec::new(),
        None if chat.question_waits_for_draft() => look.lang.draft_first(),
        Some(Hint::Enlarge) | None => return vec![footer(chat, look)],
    };
    // Half a hint is none: on a narrow screen it goes on in the next row.
    let mut lines = text::wrap(&[Span::styled(format!("  {words}"), look.theme.warning())], look.columns);
    lines.truncate(rows);
    lines
}

/// The completions of a mention, scrolled to the chosen one; and the keys, if there is room.
fn menu(chat: &Chat, look: RowStyle, rows: usize) -> Vec<Line<'static>> {
    let theme = look.theme;
    let room = look.columns.saturating_sub(2);
    let mut chosen = 0;
    let draw = |(choice, is_chosen): (&MentionChoice, bool)| {
        let (words, style) = match choice {
            MentionChoice::Teammate(teammate) => {
                (text::cut(&format!("@{}", clean_line(&teammate.name)), room), theme.teammate(&teammate.color))
            }
            MentionChoice::Path(path) => (text::cut_front(&clean_line(path), room), Style::default()),
        };
        let style = if is_chosen { theme.user() } else { style };
        Line::from(vec![Span::styled(if is_chosen { "❯ " } else { "  " }, theme.user()), Span::styled(words, style)])
    };
    let mut lines = Vec::new();
    for (index, choice) in chat.choices().enumerate() {
        if choice.1 {
            chosen = index;
        }
        lines.push(draw(choice));
    }
    let first = (chosen + 1).saturating_sub(rows);
    let mut lines: Vec<Line<'static>> = lines.into_iter().skip(first).take(rows).collect();
    if !lines.is_empty() && lines.len() < rows {
        let hint = text::cut(&format!("  {}", look.lang.menu_keys()), look.columns);
        lines.push(Line::from(Span::styled(hint, theme.faint())));
    }
    lines
}

fn footer(chat: &Chat, look: RowStyle) -> Line<'static> {
    let session = chat.session();
    let settings = session.settings();
    let mode = format!("{} {}", settings.mode.name(), look.lang.mode());
    let mut parts = vec![clean_line(&settings.model.name), mode];
    if let Some(percent) = session.status().and_then(slash_output::percent).filter(|percent| *percent > 0) {
        parts.push(format!("{percent}% {}", look.lang.context()));
    }
    let sum = session.cost().total();
    if sum.nano > 0 {
        parts.push(spent(sum.nano, sum.unknown_nano));
    }
    let taken = text::width(&parts.join(" · ")) + 5;
    let room = look.columns.saturating_sub(taken).min(CWD_COLUMNS_MAX);
    if room >= CWD_COLUMNS_MIN {
        parts.push(text::cut_front(&clean_line(chat.cwd()), room));
    }
    Line::from(Span::styled(text::cut(&format!("  {}", parts.join(" · ")), look.columns), look.theme.faint()))
}

/// An empty row, and what is going on, for how long, at what cost.
fn status(chat: &Chat, look: RowStyle, now_ms: i64) -> Vec<Line<'static>> {
    let lang = look.lang;
    let session = chat.session();
    if session.questions.first().is_some() {
        // If there is no room below the draft, this line says whether keys go to the draft or to the question.
        let is_below = !(chat.question_waits_for_draft() && chat.is_question_hidden());
        let words = if is_below { lang.waiting_for_you() } else { lang.draft_first() };
        let words = text::cut(&format!("⏸ {words}"), look.columns);
        return vec![Line::from(Span::styled(words, look.theme.warning()))];
    }
    if session.questions.is_put_off() && session.transcript().running().next().is_none() {
        let words = text::cut(&format!("⏸ {}", lang.question_put_off()), look.columns);
        return vec![Line::default(), Line::from(Span::styled(words, look.theme.warning()))];
    }
    if !session.is_busy() {
        return team_status(chat, look);
    }
    let transcript = session.transcript();
    let until = |at_ms: i64| since(now_ms, at_ms);
    let what = match transcript.activity() {
        Activity::Idle => lang.sending().to_owned(),
        Activity::Waiting => lang.working().to_owned(),
        Activity::Thinking => lang.thinking().to_owned(),
        Activity::Writing => lang.writing().to_owned(),
        Activity::Preparing(tool) => lang.preparing(clean_line(&tool)),
        Activity::Running(tools) => lang.running(clean_line(&tools.join(", "))),
        Activity::Retrying { at_ms } => lang.retrying_in(until(at_ms)),
        Activity::Paced { until_ms } => lang.pacing(until(until_ms)),
        Activity::Stopping => lang.stopping().to_owned(),
    };
    let elapsed = transcript.elapsed_ms(now_ms);
    let mut parts = vec![what];
    // The output of a command is shown below its call.
    let others = transcript.running().filter(|tool| !tool.is_command);
    let progress = others.map(|tool| clean_line(tool.progress_line())).find(|words| !words.is_empty());
    parts.extend(progress);
    if elapsed >= 1_000 {
        parts.push(whole_seconds(elapsed));
    }
    let sum = session.turn_spending();
    if sum.tokens() > 0 {
        parts.push(format!("↑ {} ↓ {}", tokens(sum.usage.input_total()), tokens(sum.usage.output)));
    }
    if let Some(nano) = sum.known_nano().filter(|nano| *nano > 0) {
        parts.push(spent(nano, sum.unknown_nano));
    }
    parts.push(lang.esc_interrupts().to_owned());
    if text::width(&parts.join(" · ")) + 2 > look.columns {
        // What to press matters more than the figures.
        parts.drain(1..parts.len() - 1);
    }
    let frame = usize::try_from(now_ms.max(0) / 100).unwrap_or(0) % SPINNER.len();
    let spinner = SPINNER.get(frame).copied().unwrap_or("·");
    let words = text::cut(&format!(" {}", parts.join(" · ")), look.columns.saturating_sub(1));
    let line = Line::from(vec![Span::styled(spinner, look.theme.user()), Span::styled(words, look.theme.faint())]);
    vec![Line::default(), line]
}

/// What the team does while the lead does nothing: shown only where the board does not show it.
fn team_status(chat: &Chat, look: RowStyle) -> Vec<Line<'static>> {
    let (session, lang) = (chat.session(), look.lang);
    let line = |words: String, style| Line::from(Span::styled(text::cut(&words, look.columns), style));
    if session.is_team_at_work() && (chat.extent() == Extent::Hidden || session.plans().running().next().is_none()) {
        let hint = if session.plans().running().next().is_some() { lang.board_hint() } else { lang.stop_hint() };
        let words = format!("● {} · {} · {hint}", lang.team_works(), lang.at_work(session.crew().busy().count()));
        return vec![Line::default(), line(words, look.theme.faint())];
    }
    // What was put off is not forgotten.
    let parked = session.plans().open().find(|known| known.plan.asked().next().is_some());
    match parked.and_then(|known| known.plan.draft()) {
        Some(draft) => {
            let words = format!("⏸ {} · {}", lang.plan_parked(clean_line(&draft.goal)), lang.parked_hint());
            vec![Line::default(), line(words, look.theme.warning())]
        }
        None => vec![Line::default()],
    }
}

/// Unread messages, the newest first, which can be taken back. A single one is not shown while nothing runs: it is
/// about to appear in the conversation.
fn queue(chat: &Chat, look: RowStyle) -> Vec<Line<'static>> {
    let session = chat.session();
    let waiting = session.queue();
    if !session.transcript().is_busy() && waiting.len() <= 1 && !session.is_held() {
        return Vec::new();
    }
    let draw = |words: String| Line::from(Span::styled(text::cut(&words, look.columns), look.theme.faint()));
    let mut lines: Vec<Line<'static>> = waiting
        .iter()
        .rev()
        .take(QUEUE_ROWS_MAX)
        .enumerate()
        .map(|(index, queued)| {
            let when = match queued.wait {
                _ if session.is_held() => look.lang.waits_word(),
                true => look.lang.queued(),
                false => look.lang.next_step(),
            };
            let hint = if index == 0 { look.lang.up_takes_back() } else { "" };
            draw(format!("  ⧗ {when}{hint}: {}", clean_line(&queued.text)))
        })
        .collect();
    if waiting.len() > QUEUE_ROWS_MAX {
        lines.push(draw(format!("  ⧗ +{} {}", waiting.len() - QUEUE_ROWS_MAX, look.lang.more())));
    }
    lines
}

fn panel(chat: &mut Chat, look: RowStyle, rows: usize) -> Vec<Line<'static>> {
    chat.draw_panel(rows.saturating_sub(1), look).map_or_else(Vec::new, |lines| {
        let mut with_gap = vec![Line::default()];
        with_gap.extend(lines);
        with_gap
    })
}

fn board(chat: &mut Chat, look: RowStyle, rows: usize) -> Vec<Line<'static>> {
    // Leaves room for the lead's running text.
    let rows = if chat.session().transcript().is_busy() { rows * 2 / 3 } else { rows };
    let mut lines = chat.draw_board(rows.saturating_sub(1), look);
    if !lines.is_empty() {
        lines.insert(0, Line::default());
    }
    lines
}

/// The teammates that have nothing to do, and those who were stopped, as `/team` has them.
fn resting(chat: &Chat, look: RowStyle) -> Option<Line<'static>> {
    let session = chat.session();
    let is_busy = |name: &str| session.crew().busy().any(|teammate| teammate.name == name);
    let idle = session.teammates().iter().map(|teammate| teammate.name.as_str()).filter(|name| !is_busy(name));
    let (stopped, idle): (Vec<&str>, Vec<&str>) = idle.partition(|name| session.teammates().is_stopped(name));
    let names = |names: &[&str]| clean_line(&names.join(", "));
    let words: Vec<String> = [
        (!idle.is_empty()).then(|| look.lang.resting(names(&idle))),
        (!stopped.is_empty()).then(|| look.lang.resting_stopped(names(&stopped))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let row = format!("○ {}", words.join(" · "));
    (!words.is_empty() && !session.is_stopped())
        .then(|| Line::from(Span::styled(text::cut(&row, look.columns), look.theme.faint())))
}

/// Background commands, also of idle agents.
fn background(chat: &Chat, look: RowStyle) -> Option<Line<'static>> {
    let whose = chat.session().background().by_name();
    let whose: Vec<String> = whose.into_iter().map(|(who, count)| format!("{} ({count})", clean_line(who))).collect();
    let words = format!("⚙ {}", look.lang.left_in_background(whose.join(", ")));
    (!whose.is_empty()).then(|| Line::from(Span::styled(text::cut(&words, look.columns), look.theme.faint())))
}

/// What is made for those who are about to begin.
fn copies(chat: &Chat, look: RowStyle) -> Option<Line<'static>> {
    let (made, of) = chat.session().copies()?;
    let words = format!("⧗ {}", look.lang.making_copies(made, of));
    Some(Line::from(Span::styled(text::cut(&words, look.columns), look.theme.faint())))
}

/// What is not finished: the block being written, the tools that run, the thought, the message just sent.
fn above(chat: &Chat, look: RowStyle, rows: usize) -> Vec<Line<'static>> {
    let session = chat.session();
    let transcript = session.transcript();
    let mut lines = markdown::render(&chat.live_text(), look.columns, look.theme);
    let mut work = Vec::new();
    if let Some(thought) = transcript.thought() {
        let words = text::cut_front(&clean_line(thought), look.columns.saturating_sub(2));
        work.push(Line::from(Span::styled(format!("✻ {words}"), look.theme.faint())));
    }
    for tool in transcript.running().take(RUNNING_ROWS_MAX) {
        work.push(Line::from(call("⏺", look.theme.faint(), &tool.name, &tool.target, look.theme)));
        if tool.is_command {
            let tail = tool.progress.lines().map(|line| (clean_line(line), look.theme.faint())).collect();
            work.extend(output(tail, look));
        }
    }
    let now_ms = chat.now_ms();
    for teammate in session.crew().delegated().take(MEMBER_ROWS_MAX) {
        let style = teammate.color.as_ref().map_or(look.theme.faint(), |color| look.theme.teammate(color));
        let name = Span::styled(format!("⏺ {}: ", teammate.called()), style);
        let used = match session.cost().turn(teammate.agent).tokens() {
            0 => String::new(),
            used => format!(" · {}", look.lang.so_many_tokens(tokens(used))),
        };
        let room = look.columns.saturating_sub(text::width(&name.content) + text::width(&used));
        let doing = Span::raw(text::cut(&session.doing(teammate, now_ms), room));
        work.push(Line::from(vec![name, doing, Span::styled(used, look.theme.faint())]));
    }
    let more = session.crew().delegated().count().saturating_sub(MEMBER_ROWS_MAX);
    if more > 0 {
        work.push(Line::from(Span::styled(format!("⏺ +{more} {}", look.lang.more()), look.theme.faint())));
    }
    work.extend(resting(chat, look));
    work.extend(background(chat, look));
    work.extend(copies(chat, look));
    let sent = match (session.queue().as_slice(), transcript.is_busy()) {
        ([only], false) if !session.is_held() => Row::Said(only.text.clone()).lines(look),
        _ => Vec::new(),
    };
    for (group, more) in [(Group::Work, work), (Group::User, sent)] {
        if !more.is_empty() && chat.is_set_off(group) {
            lines.push(Line::default());
        }
        lines.extend(more);
    }
    let hidden = lines.len().saturating_sub(rows);
    lines.split_off(hidden)
}
