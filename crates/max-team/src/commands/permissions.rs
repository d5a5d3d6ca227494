//! `permissions`: what agents may do, and why.

use max_team_core::agent::Constraints;
use max_team_core::policy::lint::lint;
use max_team_core::policy::{Hint, Mode, PROTECTED, ProtectedReason, ProtectedRow, Rule, Rules, Verdict};
use max_team_runtime::with_team;
use max_team_tools::{Registry, SearchService, aliases};
use serde_json::{Value, json};

use crate::args::{ExplainVerdict, Permissions};
use crate::headless;
use max_team_terminal::text::{self, clean_line};
use max_team_workspace::agents;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::permissions::{
    self, Explanation, LoadedPermissions, PermissionQuestion, RuleFlags, TrustedRules, load,
};
use max_team_workspace::setup::{self, AppEnv};

pub(crate) fn run(place: &AppEnv, command: &Permissions) -> anyhow::Result<Exit> {
    let config = place.settings(None, Vec::new())?;
    let root = setup::project_root(place, &config)?;
    let loaded = load(place, &root, &RuleFlags { opened: &config.tools.private_hosts, ..RuleFlags::default() })?;
    match command {
        Permissions::Why(options) => {
            loaded.warnings.iter().for_each(|warning| headless::talk(warning));
            let (mode, _) = loaded.mode(config.permissions.mode, config.chooser("permissions.mode"));
            let checks = setup::test_commands(&config, &root);
            let search = setup::services(place, &config)?.search;
            let mode = options.permission_mode.unwrap_or(mode);
            why(place, &root, (&loaded, &checks, &search), (mode, setup::sandbox_powers(&config)), options)
        }
        Permissions::Lint { json } => faults(&loaded, place.speaks(), *json),
        Permissions::List { json } => list(place, &loaded, *json),
        Permissions::Protected { json } => protected(&config.audit.output, place.speaks(), *json),
        Permissions::Trust { yes } => trust(place, &root, &loaded, *yes),
    }
}

fn why(
    place: &AppEnv,
    root: &std::path::Path,
    (loaded, checks, search): (&LoadedPermissions, &[Vec<String>], &SearchService),
    (mode, (sandboxed, unshielded)): (Mode, (bool, bool)),
    options: &ExplainVerdict,
) -> anyhow::Result<Exit> {
    let constraints = match &options.agent {
        Some(name) => constraints(place, options, name)?,
        None => Constraints::default(),
    };
    let question = PermissionQuestion { tool: options.tool.as_deref(), input: &options.what, search };
    let own = Rules { sandboxed, unshielded, ..Rules::new(mode, &constraints) };
    let rules = Rules { permissions: &loaded.permissions, checks, ..own };
    let explained = question.explain(root, &rules)?;
    let waiting = match explained.judged.verdict {
        Verdict::Allow => Vec::new(),
        _ => untrusted(&question, root, &rules, &loaded.held)?,
    };
    let text = match options.json {
        true => {
            let mut json = explained.json();
            if let (false, Value::Object(json)) = (waiting.is_empty(), &mut json) {
                json.insert("untrusted".to_owned(), waiting.iter().map(|rule| row(rule, false)).collect());
            }
            format!("{json}\n")
        }
        false => told(&explained, &waiting, (mode, options), place),
    };
    super::print(&text)?;
    Ok(if explained.judged.verdict == Verdict::Allow { Exit::Ok } else { Exit::Denied })
}

/// The rules that would allow a call if they were trusted: none of them can be left out.
fn untrusted<'a>(
    question: &PermissionQuestion<'_>,
    root: &std::path::Path,
    rules: &Rules<'_>,
    held: &'a [Rule],
) -> anyhow::Result<Vec<&'a Rule>> {
    let allow = |with: &[&Rule]| {
        let mut permissions = rules.permissions.clone();
        permissions.rules.extend(with.iter().map(|rule| (*rule).clone()));
        let judged = question.explain(root, &Rules { permissions: &permissions, ..*rules })?.judged;
        anyhow::Ok(judged.verdict == Verdict::Allow)
    };
    let mut needed: Vec<&Rule> = held.iter().collect();
    if !allow(&needed)? {
        return Ok(Vec::new());
    }
    for rule in held {
        let others: Vec<&Rule> = needed.iter().copied().filter(|other| !std::ptr::eq(*other, rule)).collect();
        if allow(&others)? {
            needed = others;
        }
    }
    Ok(needed)
}

fn constraints(place: &AppEnv, options: &ExplainVerdict, name: &str) -> Result<Constraints, CliError> {
    let team = agents::team(options.agents.as_deref(), place)?;
    let all: Vec<_> = std::iter::once(team.lead).chain(team.members).chain(team.experts).collect();
    let names: Vec<String> = all.iter().map(|member| member.definition.name.clone()).collect();
    let found = all.into_iter().find(|member| member.definition.name == name).map(|member| member.constraints);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    found.ok_or_else(|| CliError::said(Exit::Usage, |lang| lang.no_agent_named(name, &names)))
}

fn told(
    explained: &Explanation,
    waiting: &[&Rule],
    (mode, options): (Mode, &ExplainVerdict),
    place: &AppEnv,
) -> String {
    let Explanation { judged, action, .. } = explained;
    let lang = place.speaks();
    let [because, written, hint, files, remembered, judged_for] = lang.why_heads();
    let rule = clean_line(&lang.basis(&judged.basis, &judged.rule));
    let verdict = if lang == Lang::En { explained.verdict() } else { lang.verdict(judged.verdict) };
    let mut rows = vec![(verdict, clean_line(&action.target)), (because, rule)];
    rows.extend(judged.origin.as_ref().map(|origin| (written, format!("{origin} ({})", origin.scope.name()))));
    rows.extend(waiting.iter().map(|rule| (hint, lang.hint_untrusted(clean_line(&rule.text), &rule.origin))));
    if waiting.is_empty() && judged.hint != Hint::None {
        rows.push((hint, clean_line(&lang.hint(&judged.hint))));
        rows.extend(judged.hint.wants_rule().then(|| (files, clean_line(&rule_files(place)))));
    }
    let rules = judged.memory.rules().iter().filter(|_| judged.verdict == Verdict::Ask);
    rows.extend(rules.map(|rule| (remembered, clean_line(rule))));
    let who = options.agent.as_deref().unwrap_or(lang.unconstrained());
    let mode = lang.basis_mode(mode.name());
    rows.push((judged_for, format!("{who}, {mode}")));
    let width = rows.iter().map(|(name, _)| text::width(name)).max().unwrap_or(0);
    let pad = |name: &str| " ".repeat(width.saturating_sub(text::width(name)));
    rows.iter().map(|(name, value)| format!("{name}{}  {value}\n", pad(name))).collect()
}

fn row(rule: &Rule, is_used: bool) -> Value {
    json!({
        "list": rule.list.name(), "rule": rule.text, "scope": rule.origin.scope.name(), "file": rule.origin.file,
        "line": rule.origin.line, "used": is_used,
    })
}

/// Where a user writes rules.
fn rule_files(place: &AppEnv) -> String {
    place.speaks().rule_files(permissions::user_file(place).display(), permissions::LOCAL_FILE)
}

fn list(place: &AppEnv, loaded: &LoadedPermissions, as_json: bool) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    loaded.warnings.iter().for_each(|warning| headless::talk(warning));
    let used = loaded.permissions.rules.iter().map(|rule| (rule, true));
    let all: Vec<(&Rule, bool)> = used.chain(loaded.held.iter().map(|rule| (rule, false))).collect();
    if as_json {
        let rows: Vec<Value> = all.iter().map(|(rule, is_used)| row(rule, *is_used)).collect();
        super::print(&format!("{}\n", Value::from(rows)))?;
        return Ok(Exit::Ok);
    }
    if all.is_empty() {
        super::print(&format!("{}\n", lang.no_rules(rule_files(place))))?;
    }
    let width = all.iter().map(|(rule, _)| clean_line(&rule.text).chars().count()).max().unwrap_or(0);
    for (rule, is_used) in all {
        let note = if is_used { "" } else { lang.rule_waits() };
        let (list, text, scope) = (rule.list.name(), clean_line(&rule.text), rule.origin.scope.name());
        super::print(&format!("{list:5}  {text:width$}  {scope:7}  {}{note}\n", rule.origin))?;
    }
    Ok(Exit::Ok)
}

/// The table that the gate decides by, and the audit file of this project.
fn protected(audit: &std::path::Path, lang: Lang, as_json: bool) -> anyhow::Result<Exit> {
    let audit = audit.display().to_string();
    if as_json {
        let row = |row: &ProtectedRow| json!({ "pattern": row.pattern, "reach": row.reach.name(), "by": row.by, "refused": row.is_held });
        let mut rows: Vec<Value> = PROTECTED.iter().map(row).collect();
        rows.push(
            json!({ "pattern": audit, "reach": ProtectedReason::Records.name(), "by": "max-team", "refused": true }),
        );
        super::print(&format!("{}\n", Value::from(rows)))?;
        return Ok(Exit::Ok);
    }
    let mut page = format!("{}\n", lang.protected_head());
    for reach in ProtectedReason::ALL {
        page.push_str(&format!("\n{}\n", lang.reach(reach)));
        let own = (reach == ProtectedReason::Records).then_some((audit.as_str(), "max-team", true));
        let rows = PROTECTED.iter().filter(|row| row.reach == reach).map(|row| (row.pattern, row.by, row.is_held));
        for (pattern, by, is_held) in rows.chain(own) {
            let note = if is_held { lang.never_by_tools() } else { "" };
            page.push_str(format!("  {:34}  {}  {note}", clean_line(pattern), lang.protector(by)).trim_end());
            page.push('\n');
        }
    }
    super::print(&page)?;
    Ok(Exit::Ok)
}

fn faults(loaded: &LoadedPermissions, lang: Lang, as_json: bool) -> anyhow::Result<Exit> {
    loaded.warnings.iter().for_each(|warning| headless::talk(warning));
    let rules: Vec<Rule> = loaded.permissions.rules.iter().chain(&loaded.held).cloned().collect();
    let registry = with_team(Registry::builtin());
    let tools: Vec<&str> = registry.specs().map(|spec| spec.name.as_str()).collect();
    // A tool of other programs that has no counterpart here is no mistake.
    let is_foreign = |rule: &Rule| rule.text.split('(').next().is_some_and(aliases::is_needless);
    let found: Vec<_> = lint(&rules, &tools).into_iter().filter(|finding| !is_foreign(finding.rule)).collect();
    if as_json {
        let told = found.iter().map(
            |finding| json!({"kind": finding.kind.name(), "words": finding.reason.to_string(), "found": row(finding.rule, true)}),
        );
        super::print(&format!("{}\n", Value::from(told.collect::<Vec<_>>())))?;
    } else {
        for finding in &found {
            let (kind, rule) = (lang.lint_kind(finding.kind), clean_line(&finding.rule.text));
            super::print(&format!(
                "{}: {kind}: `{rule}`: {}\n",
                finding.rule.origin,
                clean_line(&lang.lint_reason(&finding.reason))
            ))?;
        }
        if found.is_empty() && loaded.unread == 0 {
            super::print(&format!("{}\n", lang.lint_nothing(rules.len())))?;
        }
    }
    Ok(if found.is_empty() && loaded.unread == 0 { Exit::Ok } else { Exit::Failed })
}

fn trust(place: &AppEnv, root: &std::path::Path, loaded: &LoadedPermissions, yes: bool) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    if loaded.held.is_empty() && loaded.hooks.is_empty() {
        super::print(&format!("{}\n", lang.rules_none_wait()))?;
        return Ok(Exit::Ok);
    }
    for rule in &loaded.held {
        super::print(&format!("allow  {}  {}\n", clean_line(&rule.text), rule.origin))?;
    }
    for (hook, origin) in &loaded.hooks {
        super::print(&format!("{}\n", lang.hook_left(&clean_line(&hook.matcher), &origin.to_string())))?;
        for line in hook.command.lines() {
            super::print(&format!("    {}\n", clean_line(line)))?;
        }
    }
    if !yes && !super::context::agreed(lang.trust_rules(), Exit::Denied, |lang| lang.trust_rules_needs_yes())? {
        super::print(&format!("{}\n", lang.rules_left()))?;
        return Ok(Exit::Denied);
    }
    let hooks = loaded.hooks.iter().map(|(hook, _)| hook.word());
    let rules: Vec<String> = loaded.held.iter().map(|rule| rule.text.clone()).chain(hooks).collect();
    let mut trusted = TrustedRules::read(&place.home).map_err(|words| CliError::translated(Exit::Failed, &words))?;
    trusted.add(&root.to_string_lossy(), &rules)?;
    super::print(&format!("{}\n", lang.rules_trusted(rules.len(), root.display())))?;
    Ok(Exit::Ok)
}
