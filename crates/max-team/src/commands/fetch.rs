//! `fetch`: the text of a web page, as agents read it, without a model.

use std::sync::Arc;

use max_team_core::text::stripped;
use max_team_tools::{PageQuery, RenderMode, Root, ToolContext, WebFault, fetch_page};

use crate::args::{self, Render};
use crate::headless::talk;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::setup::{self, AppEnv};

pub(crate) fn run(place: &AppEnv, options: &args::Fetch) -> anyhow::Result<Exit> {
    let query = PageQuery {
        url: options.url.clone(),
        selector: options.selector.clone(),
        page: options.page.map(|page| page as usize),
        render: match options.render {
            Render::Auto => RenderMode::Auto,
            Render::Never => RenderMode::Never,
            Render::Always => RenderMode::Always,
        },
        raw: options.raw,
    };
    query.check().map_err(|fault| failed(Exit::Usage, &fault))?;
    let config = place.settings(options.config.as_deref(), Vec::new())?;
    let mut services = setup::services(place, &config)?;
    for host in &options.allow_host {
        if host.is_empty() || host.contains(['/', '*', '@', ' ']) {
            return Err(CliError::said(Exit::Usage, |lang| lang.bad_allow_host(host)).into());
        }
        services.private_hosts.push(host.to_lowercase());
    }
    let root = Root::open(&place.cwd).map_err(|error| CliError::new(Exit::Failed, error.to_string()))?;
    let cx = ToolContext { services: Arc::new(services), ..ToolContext::new(Arc::new(root)) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let page = runtime.block_on(fetch_page(&cx, query)).map_err(|fault| failed(Exit::Failed, &fault))?;
    super::print(&stripped(&page.text.replace('\r', "")))?;
    if !page.text.is_empty() && !page.text.ends_with('\n') {
        super::print("\n")?;
    }
    if page.is_error {
        return Err(CliError::said(Exit::Failed, |lang| lang.page_failed(lang.page_about(&page))).into());
    }
    if page.text.trim().is_empty() || page.is_incomplete {
        talk(&place.lang(&config).page_about(&page));
    }
    Ok(Exit::Ok)
}

fn failed(exit: Exit, fault: &WebFault) -> CliError {
    CliError::said(exit, |lang| stripped(&lang.web_fault(fault)).into_owned())
}
