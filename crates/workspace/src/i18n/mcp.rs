//! Phrases about MCP servers.

use max_team_core::limits::{MCP_LOGIN_MS, MCP_MESSAGE_BYTES_MAX};
use max_team_core::mcp::{SourceState, SourceStatus};
use max_team_core::suggest::nearest;
use max_team_mcp::{HttpFault, McpError, ProgramLimit, RefusedGrant, ServerEnd, ServerNotice, SignInError, Words};

use super::Lang;

/// Servers that are named in one line.
const NAMED_MAX: usize = 8;

impl Lang {
    /// How the servers of a process speak to the user.
    pub fn server_words(self) -> Words {
        match self {
            Self::En => {
                Words { error: |error| Self::En.server_error(error), notice: |said| Self::En.server_notice(said) }
            }
            Self::Zh => {
                Words { error: |error| Self::Zh.server_error(error), notice: |said| Self::Zh.server_notice(said) }
            }
        }
    }

    /// Why a server is of no use.
    pub fn server_error(self, error: &McpError) -> String {
        match error {
            McpError::Connect(why) => why.clone(),
            McpError::Login(name) => self.mcp_login_needed(name),
            McpError::LoginEnded(name) => self.mcp_login_ended(name),
            McpError::Http(fault) => self.http_fault(fault),
            McpError::Timeout(limit) => self.server_late(limit.as_secs_f32()),
            McpError::Gone(end) => self.server_end(end),
            McpError::Changed => self.server_changed().to_owned(),
            McpError::Answer(why) => self.server_answers_error(why),
        }
    }

    fn http_fault(self, fault: &HttpFault) -> String {
        match fault {
            HttpFault::Refused(place) => self.mcp_refused(place),
            HttpFault::Unreachable(place) => self.mcp_unreachable(place),
            HttpFault::Login => self.mcp_login_asked().to_owned(),
            HttpFault::Token => self.mcp_token_refused().to_owned(),
            HttpFault::Forbidden => self.mcp_forbidden().to_owned(),
            HttpFault::NotFound(status) => self.mcp_not_found(status),
            HttpFault::Status(status) => self.mcp_status(status),
            HttpFault::Redirect(place) => self.mcp_redirect(place),
            HttpFault::ContentType(kind) => self.mcp_content_type(kind),
            HttpFault::Content => self.mcp_content().to_owned(),
            HttpFault::TooLong => self.server_long_message(MCP_MESSAGE_BYTES_MAX >> 20),
            HttpFault::Broken => self.mcp_broken().to_owned(),
            HttpFault::SessionEnded => self.mcp_session_ended().to_owned(),
            HttpFault::LoginEnded => self.mcp_login_over().to_owned(),
            HttpFault::NotRenewed => self.mcp_not_renewed().to_owned(),
        }
    }

    /// Why the user could not sign in at a server, and what to do.
    pub fn sign_in_error(self, error: &SignInError) -> String {
        match error {
            SignInError::Http(fault) => self.http_fault(fault),
            SignInError::NotOffered => self.sign_in_not_offered().to_owned(),
            SignInError::Open(place) => self.sign_in_open(place),
            SignInError::Registration(why) => self.sign_in_registration(why),
            SignInError::Issuer => self.sign_in_issuer().to_owned(),
            SignInError::Denied(why) => self.sign_in_denied(why),
            SignInError::Timeout => self.sign_in_timeout(MCP_LOGIN_MS / 60_000),
            SignInError::Failed(why) => self.sign_in_failed(why),
        }
    }

    fn server_end(self, end: &ServerEnd) -> String {
        let with = |end: String, wrote: &Option<String>| match wrote {
            Some(line) => self.server_gone_wrote(end, line),
            None => end,
        };
        match end {
            ServerEnd::Exited { code, wrote } => with(self.server_gone_exit(code), wrote),
            ServerEnd::Signalled { signal, wrote } => with(self.server_gone_signal(signal), wrote),
            ServerEnd::Limit(limit) => self.server_gone_limit(match limit {
                ProgramLimit::Cpu => self.limit_cpu(),
                ProgramLimit::Memory => self.limit_memory(),
                ProgramLimit::Processes => self.limit_processes(),
                ProgramLimit::FileBytes => self.limit_file_bytes(),
                ProgramLimit::Output => self.limit_output(),
            }),
            ServerEnd::Stopped => self.server_gone().to_owned(),
            ServerEnd::NoProgram(program) => self.server_no_program(program),
            ServerEnd::NoInterpreter(program) => self.server_no_interpreter(program),
            ServerEnd::NotExecutable(program) => self.server_not_executable(program),
            ServerEnd::LongMessage { mb } => self.server_long_message(mb),
            ServerEnd::BadLines => self.server_bad_lines().to_owned(),
            ServerEnd::Closed => self.server_closed().to_owned(),
            ServerEnd::Other(why) => why.clone(),
        }
    }

    pub fn server_notice(self, notice: &ServerNotice) -> String {
        match notice {
            ServerNotice::Changed { server } => self.server_changed_notice(server),
            ServerNotice::Unused { server, error } => self.server_unused_notice(server, self.server_error(error)),
            ServerNotice::ToolsCut { server, used } => self.server_cut_notice(server, used),
            ServerNotice::BadTools { server, names } => self.server_bad_tools_notice(server, names.join(", ")),
            ServerNotice::Refused { server, path, why } => {
                self.server_refused_notice(server, path, self.refused_grant(*why))
            }
        }
    }

    /// Why a path of an entry is not opened for the server's program.
    pub fn refused_grant(self, why: RefusedGrant) -> &'static str {
        match why {
            RefusedGrant::Missing => self.grant_missing(),
            RefusedGrant::Closed => self.grant_closed(),
            RefusedGrant::File => self.grant_file(),
        }
    }

    /// The end of a message about an unknown name: the nearest name, if any is near.
    pub fn near<'a>(self, asked: &str, names: impl IntoIterator<Item = &'a str>) -> String {
        nearest(asked, names).map(|name| self.near_name(name)).unwrap_or_default()
    }

    /// Like `near`, with the names there are if none is near.
    pub fn near_or_all<'a>(self, asked: &str, names: impl IntoIterator<Item = &'a str>) -> String {
        let names: Vec<&str> = names.into_iter().collect();
        let near = self.near(asked, names.iter().copied());
        if !near.is_empty() {
            return near;
        }
        let mut told: Vec<String> = names.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
        told.extend(names.len().checked_sub(NAMED_MAX).filter(|more| *more > 0).map(|more| self.more_names(more)));
        if told.is_empty() { self.no_names_there().to_owned() } else { self.names_there(told.join(", ")) }
    }

    /// The state of a server in a few words.
    pub fn source_state(self, source: &SourceStatus) -> String {
        match &source.state {
            SourceState::Idle if source.tools == 0 => self.server_unknown().to_owned(),
            SourceState::Idle => self.server_known(source.tools),
            SourceState::Starting => self.source_starting().to_owned(),
            SourceState::Ready => self.source_ready(source.tools),
            SourceState::Failed(why) => self.source_failed(why),
            SourceState::Withdrawn(why) => self.source_withdrawn(why),
            SourceState::NeedsLogin(why) => self.server_needs_login(why),
            SourceState::Changed => self.server_changed().to_owned(),
        }
    }

    /// That a project brings servers which the user has not trusted; `None` if it brings none.
    pub fn servers_untrusted(self, names: &[&str]) -> Option<String> {
        let shown: Vec<String> = names.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
        let rest = if names.len() > NAMED_MAX { ", …" } else { "" };
        (!names.is_empty()).then(|| self.servers_not_trusted(names.len(), format!("{}{rest}", shown.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_addresses_are_told_in_both_languages() {
        let faults = [
            HttpFault::Refused("h:1".into()),
            HttpFault::Unreachable("h:1".into()),
            HttpFault::Login,
            HttpFault::Token,
            HttpFault::Forbidden,
            HttpFault::NotFound(404),
            HttpFault::Status(500),
            HttpFault::Redirect("http://h".into()),
            HttpFault::ContentType("text/html".into()),
            HttpFault::Content,
            HttpFault::TooLong,
            HttpFault::Broken,
            HttpFault::SessionEnded,
            HttpFault::LoginEnded,
            HttpFault::NotRenewed,
        ];
        let logins = [McpError::Login("git".into()), McpError::LoginEnded("git".into())];
        for error in faults.map(McpError::Http).into_iter().chain(logins) {
            assert_eq!(Lang::En.server_error(&error), error.to_string());
            let chinese = Lang::Zh.server_error(&error);
            assert!(chinese.chars().any(max_team_core::text::is_chinese), "{chinese}");
        }
    }
}
