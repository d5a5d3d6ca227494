//! Every bound, with its name.
//!
//! A queue, loop, retry, payload or piece of context without a row here is a defect. Code that hits a bound returns a
//! typed outcome, never a silent cut.

/// Characters of the name of a channel or of an account there.
pub const CHANNEL_NAME_CHARS_MAX: usize = 64;
/// Characters of a chat's id.
pub const CHAT_ID_CHARS_MAX: usize = 256;
/// Messages to chats that are read from the outbox at a time.
pub const OUTBOX_PAGE_MAX: usize = 500;
/// Chats to which messages are sent at the same time, per channel.
pub const CHATS_SENDING_MAX: usize = 16;
/// Attempts to send one message in one run of the program before it is given up.
pub const SEND_ATTEMPTS_MAX: u32 = 10;
/// Milliseconds that a message which is being sent has when the program is asked to end.
pub const SEND_GRACE_MS: u64 = 5_000;
/// Sessions of chats that are open at a time. A message of a further chat is refused while all of them work or wait for a person.
pub const CHATS_OPEN_MAX: usize = 64;
/// Milliseconds until a server looks again whether the process that hands a session over to it still lives.
pub const HANDOVER_LOOK_MS: u64 = 1_000;
/// Milliseconds that a chat waits until the server has opened the session that it hands over.
pub const HANDOVER_WAIT_MS: u64 = 10_000;
/// HTTP connections of the web server that are open at a time; a further one waits.
pub const WEB_CONNECTIONS_MAX: usize = 512;
/// Event streams of the web server that are open at a time; a further one is refused.
pub const WEB_WATCHERS_MAX: usize = 256;
/// Events that are sent to watchers at once.
pub const WEB_BATCH_EVENTS_MAX: usize = 64;
/// Batches of events that wait for one watcher. A slower one reads the log again from its place.
pub const WEB_WATCHER_BATCHES_MAX: usize = 64;
/// Answers in progress whose text is kept for watchers that come in the middle.
pub const WEB_LIVE_ANSWERS_MAX: usize = 1_024;
/// Bytes of the body of a request to the web server.
pub const WEB_BODY_BYTES_MAX: usize = 1 << 20;
/// Bytes of a file that is attached in the browser.
pub const WEB_FILE_BYTES_MAX: usize = 10 << 20;
/// Milliseconds that such a file may take to arrive.
pub const WEB_FILE_MS_MAX: u64 = 120_000;
/// Files that are received or sent by the web server at a time; a further one waits.
pub const WEB_FILES_AT_ONCE_MAX: usize = 4;
/// Stored events in one answer of the web server.
pub const WEB_EVENTS_PAGE_MAX: usize = 5_000;
/// Rows of one list in an answer of the web server.
pub const WEB_ROWS_MAX: usize = 500;
/// Requests that one token may send at once, and how many more per second.
pub const WEB_REQUESTS_BURST: u32 = 300;
pub const WEB_REQUESTS_PER_SECOND: u32 = 60;
/// Attempts to log in that may fail at once, and milliseconds until one more may.
pub const WEB_LOGINS_BURST: u32 = 10;
pub const WEB_LOGIN_MS: u64 = 6_000;
/// Characters of an idempotency key.
pub const WEB_KEY_CHARS_MAX: usize = 200;
/// Milliseconds for which the answer under an idempotency key is kept.
pub const WEB_KEY_MS: u64 = 24 * 60 * 60_000;
/// Answers that are kept under idempotency keys; the oldest go first.
pub const WEB_KEYS_KEPT_MAX: usize = 10_000;
/// Stored answers between two removals of old ones.
pub const WEB_KEYS_SWEPT_AFTER: usize = 256;
/// Milliseconds that a login link can be used.
pub const WEB_LOGIN_LINK_MS: i64 = 60 * 60_000;
/// Milliseconds that a browser stays logged in.
pub const WEB_COOKIE_MS: i64 = 30 * 24 * 60 * 60_000;
/// Tokens of the web server that exist at a time, browsers included.
pub const WEB_TOKENS_MAX: usize = 256;
/// Milliseconds that a request for a chat completion waits for the team.
pub const WEB_COMPLETION_MS_MAX: u64 = 60 * 60_000;
/// Calls of MCP clients that wait for the team at a time; a further one is refused.
pub const MCP_CALLS_MAX: usize = 64;
/// The longest time that a call of an MCP client waits for the team; the work goes on, and the client asks for its outcome later.
pub const MCP_CALL_WAIT_MS_MAX: u64 = 60 * 60_000;
/// Milliseconds that the outcome of an MCP task can be asked for.
pub const MCP_TASK_TTL_MS: u64 = 24 * 60 * 60_000;
/// Bytes of text in one result of an MCP tool; the rest is read with `offset`.
pub const MCP_TEXT_BYTES_MAX: usize = 48 << 10;
/// Rows of one list in a result of an MCP tool.
pub const MCP_ROWS_MAX: usize = 30;
/// Characters of a text in such a row, and of a progress message.
pub const MCP_ROW_CHARS_MAX: usize = 200;
/// HTTP connections of MCP clients that are open at a time; a further one waits.
pub const MCP_CONNECTIONS_MAX: usize = 64;
/// MCP sessions (of protocol versions before 2026-07-28) over HTTP that exist at a time; a further one is refused.
pub const MCP_HTTP_SESSIONS_MAX: usize = 256;
/// Milliseconds without a message after which such a session ends: longer than any call.
pub const MCP_HTTP_SESSION_IDLE_MS: u64 = 2 * MCP_CALL_WAIT_MS_MAX;
/// Characters of the name that an MCP client gives to a conversation.
pub const MCP_CONVERSATION_CHARS_MAX: usize = 64;
/// Model rounds in one chat turn, unless the user says otherwise.
pub const ROUNDS_MAX_DEFAULT: u32 = 20;
/// Retries of one model call after its first attempt.
pub const RETRIES_MAX_DEFAULT: u32 = 3;
/// Wait before the first retry; doubles each time.
pub const RETRY_BASE_MS: u64 = 1_000;
/// The longest wait before a plan's model call is retried while the model server cannot be reached. There is no limit
/// on these retries.
pub const OUTAGE_RETRY_MS_MAX: u64 = 60_000;
/// Errors (HTTP 5xx) that a model server answers one call of a plan with before the task fails: half an hour of tries.
pub const SERVER_ERRORS_MAX: u32 = 30;
/// Milliseconds without new content after which a streamed answer is given up, unless settings say otherwise.
pub const PROGRESS_MS_DEFAULT: u64 = 10 * 60_000;
/// Bytes of new content that count as progress: pings, empty pieces and a byte now and then do not.
pub const PROGRESS_BYTES_MIN: usize = 64;
/// Output tokens that are charged for a call whose process died, because the received part is unknown.
pub const LOST_OUTPUT_TOKENS: u32 = 256;
/// The longest wait that a provider's `retry-after` can impose.
pub const RETRY_AFTER_MS_MAX: u64 = 5 * 60_000;
/// Identical answers (same tools, same input) in a row before the model is told so.
pub const REPEATS_WARNED: u32 = 3;
/// Identical answers in a row before the turn ends; the model is warned at each. Polling is legitimate for a while, so
/// this is generous; a chat turn is bounded by the round limit.
pub const REPEATS_MAX: u32 = 64;
/// Identical answers with identical results in a row before the turn of a called agent, a plan's member or a teammate ends.
pub const REPEATS_DELEGATED_MAX: u32 = 6;
/// Files that the result of a call names as changed.
pub const CHANGED_TOLD_MAX: usize = 20;
/// Times an empty answer or a missing structured answer is asked for again.
pub const NUDGES_MAX: u32 = 2;
/// How often an answer that does not have the shape of a contract is sent back.
pub const CORRECTIONS_MAX: u32 = 1;
/// Tool calls in one answer; the rest are refused with a reason.
pub const CALLS_PER_ANSWER_MAX: usize = 64;
/// Bytes of one tool's input.
pub const TOOL_INPUT_BYTES_MAX: usize = 8 << 20;
/// Bytes of text that one tool result may put into the conversation.
pub const TOOL_RESULT_BYTES_MAX: usize = 96 << 10;
/// Bytes of one output that is kept as a file because it is too large for the conversation.
pub const KEPT_BYTES_MAX: usize = 32 << 20;
/// Bytes of all outputs that are kept for one agent; the oldest go first.
pub const KEPT_TOTAL_BYTES_MAX: u64 = 256 << 20;
/// Days after which the kept outputs of an agent are removed, counted from the last one.
pub const KEPT_DAYS_MAX: u64 = 14;
/// Bytes of all files in one agent folder (`@files`, `@data`).
pub const OWN_BYTES_MAX: u64 = 64 << 20;
/// Names of files and folders in one agent folder.
pub const OWN_NAMES_MAX: usize = 2_000;
/// Bytes of one line of a tool's progress.
pub const PROGRESS_BYTES_MAX: usize = 200;
/// Lines of a tool's progress: the last ones that a command has printed.
pub const PROGRESS_LINES_MAX: usize = 5;
/// Milliseconds between two progress reports, at least.
pub const PROGRESS_MS: u64 = 200;
/// Bytes of a running command's output that its last lines are taken from.
pub const OUTPUT_TAIL_BYTES_MAX: usize = 8 << 10;
/// Bytes of one file that `read_file` returns at once.
pub const READ_BYTES_MAX: usize = 64 << 10;
/// Lines of one file that `read_file` returns at once.
pub const READ_LINES_MAX: usize = 2_000;
/// Bytes of an image that goes to a model.
pub const IMAGE_BYTES_MAX: u64 = 5 << 20;
/// Files that one message puts into the conversation by mentioning them (`@path`).
pub const MENTION_FILES_MAX: usize = 16;
/// Prompts of one MCP server that are known.
pub const MCP_PROMPTS_MAX: usize = 200;
/// Bytes of text of one mentioned file; the rest is cut off, with a note.
pub const MENTION_FILE_BYTES_MAX: usize = READ_BYTES_MAX;
/// Bytes of text of all files that one message mentions.
pub const MENTION_BYTES_MAX: usize = 192 << 10;
/// Pictures that one message mentions.
pub const MENTION_IMAGES_MAX: usize = 4;
/// Milliseconds that reading the files of one message may take.
pub const MENTION_MS_MAX: u64 = 20_000;
/// Milliseconds that a cancelled read of mentioned files may take to return; after that its files are left out.
pub const MENTION_GRACE_MS_MAX: u64 = 1_000;
/// Paths of a project that a mention is completed from.
pub const COMPLETION_PATHS_MAX: usize = 50_000;
/// Bytes of a file that may be edited or written by a tool.
pub const WRITE_BYTES_MAX: u64 = 8 << 20;
/// Bytes of a file up to which its old content is kept for a rewind.
pub const REWIND_FILE_BYTES_MAX: u64 = 8 << 20;
/// Bytes of files that one rewind restores.
pub const REWIND_BYTES_MAX: u64 = 256 << 20;
/// Files that one rewind restores, and that one step may change and still be rewound.
pub const REWIND_FILES_MAX: usize = 10_000;
/// Bytes of files that are kept before an approved command deletes them where no scan watches.
pub const DELETION_KEPT_BYTES_MAX: u64 = 256 << 20;
/// How many of them; fewer than one rewind restores.
pub const DELETION_KEPT_FILES_MAX: usize = 8_000;
/// Files of a deletion that are counted; the rest counts as lost.
pub const DELETION_COUNTED_MAX: usize = 200_000;
/// Files that the user changed after a command was killed, named by a rewind.
pub const REWIND_LATER_MAX: usize = 100;
/// Lines of the outline of a project's files that a lead is told.
pub const OUTLINE_LINES_MAX: usize = 40;
/// Bytes of these lines.
pub const OUTLINE_BYTES_MAX: usize = 1_800;
/// Names in one line of the outline.
pub const OUTLINE_NAMES_MAX: usize = 20;
/// Names that are read for the outline.
pub const OUTLINE_ENTRIES_MAX: usize = 2_000;
/// Names that `list_dir` returns.
pub const LIST_ENTRIES_MAX: usize = 1_000;
/// Matches that `search_code` returns.
pub const SEARCH_MATCHES_MAX: usize = 200;
/// Bytes of one matching line that `search_code` returns.
pub const SEARCH_LINE_BYTES_MAX: usize = 400;
/// Bytes of one page that `web_fetch` takes.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
/// Milliseconds that one page, or one question to a service, may take.
pub const PAGE_MS_MAX: u64 = 30_000;
/// Results of one web search.
pub const SEARCH_RESULTS_MAX: u32 = 20;
/// Bytes of a page's text that one call of `web_fetch` returns.
pub const FETCH_PAGE_BYTES_MAX: usize = 32 << 10;
/// Pages that a process keeps for its sessions, and their bytes.
pub const PAGE_CACHE_MAX: usize = 64;
pub const PAGE_CACHE_BYTES_MAX: usize = 32 << 20;
/// Calls of remote tools that one process has under way at a time; others wait.
pub const REMOTE_CALLS_MAX: usize = 64;
/// Calls of remote tools that go to one server at a time; others wait, so that a slow server holds up only its own.
pub const REMOTE_CALLS_PER_SERVER_MAX: usize = 8;
/// Milliseconds that a call of a remote tool may take, with the time that it waits for its server.
pub const REMOTE_CALL_MS_MAX: u64 = 120_000;
/// Milliseconds that a cancelled call of a remote tool that changes something has to end by itself.
pub const REMOTE_GRACE_MS_MAX: u64 = 500;
/// Milliseconds that Chromium may take to start: the first start after its installation reads some 300 MB.
pub const BROWSER_START_MS: u64 = 30_000;
/// Milliseconds after which a browser that no agent uses is closed.
pub const BROWSER_IDLE_MS: u64 = 10 * 60_000;
/// Milliseconds within which a browser that ended by itself is started again only once.
pub const BROWSER_RESTART_MS: u64 = 10 * 60_000;
/// Milliseconds that one action in a browser may take.
pub const BROWSER_ACTION_MS: u64 = 60_000;
/// Milliseconds that a page may take to answer and to load; what is there by then is told.
pub const BROWSER_LOAD_MS: u64 = 20_000;
/// Milliseconds that a page may take to show what an action changed.
pub const BROWSER_SETTLE_MS: u64 = 1_000;
/// Milliseconds that one question to a page may take: a page whose scripts never end answers none.
pub const BROWSER_CALL_MS: u64 = 10_000;
/// Milliseconds that the action `wait` waits at most.
pub const BROWSER_WAIT_MS_MAX: u64 = 30_000;
/// Bytes of a page's accessibility tree that one action tells.
pub const BROWSER_SNAPSHOT_BYTES_MAX: usize = 24 << 10;
/// Elements of a page up to which its accessibility tree is read.
pub const BROWSER_ELEMENTS_MAX: u64 = 60_000;
/// Characters of a page up to which its accessibility tree is read.
pub const BROWSER_CHARS_MAX: u64 = 4 << 20;
/// Frames of a page that are read.
pub const BROWSER_FRAMES_MAX: usize = 32;
/// Contexts of one agent that are kept aside: those of other private hosts, and that of the public internet.
pub const BROWSER_CONTEXTS_ASIDE_MAX: usize = 4;
/// Fields of a page that are asked whether they are for a password; further ones count as such.
pub const BROWSER_FIELDS_MAX: usize = 200;
/// Pages that one agent has open at a time.
pub const BROWSER_TABS_MAX: usize = 12;
/// Bytes of one file that a page may download.
pub const BROWSER_DOWNLOAD_BYTES_MAX: u64 = 32 << 20;
/// Bytes of one message of Chromium.
pub const BROWSER_MESSAGE_BYTES_MAX: usize = 96 << 20;
/// Connections of one browser at a time.
pub const BROWSER_CONNECTIONS_MAX: usize = 256;
/// Tools that one source (an MCP server) may offer.
pub const SOURCE_TOOLS_MAX: usize = 256;
/// Tools of sources that a request describes; with more, those that fit the conversation are described and `tool_search`
/// finds the others.
pub const SOURCE_TOOLS_SHOWN: u32 = 40;
/// Milliseconds that an MCP server may take until it answers for the first time.
pub const MCP_CONNECT_MS: u64 = 10_000;
/// Milliseconds that an MCP server may take to list its tools.
pub const MCP_LIST_MS: u64 = 10_000;
/// Milliseconds that one call of an MCP tool may take, unless its server's entry says otherwise.
pub const MCP_CALL_MS: u64 = 60_000;
/// Milliseconds that the user has to sign in at an MCP server with the browser.
pub const MCP_LOGIN_MS: u64 = 5 * 60_000;
/// Milliseconds that one request to an authorization server may take.
pub const MCP_LOGIN_REQUEST_MS: u64 = 20_000;
/// Milliseconds that the renewal of a login may take, with all its requests.
pub const MCP_LOGIN_RENEWAL_MS: u64 = 30_000;
/// Bytes of one answer of an authorization server.
pub const MCP_LOGIN_BODY_BYTES_MAX: usize = 1 << 20;
/// Bytes of one message of an MCP server. A server that sends a longer one is ended.
pub const MCP_MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Lines of an MCP server that are no message before it is ended.
pub const MCP_BAD_LINES_MAX: usize = 1_000;
/// Times that an MCP server is started again after it ended unasked, until its tools are withdrawn.
pub const MCP_RESTARTS_MAX: u32 = 3;
/// Milliseconds before an MCP server whose tools were withdrawn is tried again.
pub const MCP_RETRY_MS: u64 = 30_000;
/// Calls to one MCP server that wait for a person's answers.
pub const MCP_ASKING_CALLS_MAX: usize = 16;
/// Milliseconds that a call to an MCP server waits for a person's answer.
pub const MCP_ANSWER_MS_MAX: u64 = 3_600_000;
/// Bytes of an MCP server's own output that are kept for `mcp logs`.
pub const MCP_LOG_BYTES_MAX: u64 = 1 << 20;
/// Bytes of the description of an MCP tool.
pub const MCP_DESCRIPTION_BYTES_MAX: usize = 2 << 10;
/// Bytes of the input schema of an MCP tool; a longer one is left out.
pub const MCP_SCHEMA_BYTES_MAX: usize = 32 << 10;
/// MCP servers that one session may have.
pub const MCP_SERVERS_MAX: usize = 200;
/// Bytes of a tool's name, as model providers accept it.
pub const TOOL_NAME_BYTES_MAX: usize = 64;
/// Host names that remote tools look up at a time: each look-up holds a thread, also when the name server is silent.
pub const REMOTE_LOOKUPS_MAX: usize = 2;
/// Places that `geocode` returns.
pub const PLACES_MAX: u32 = 10;
/// Redirects that `web_fetch` follows.
pub const REDIRECTS_MAX: usize = 5;
/// Bytes of a document (PDF, office files) that is read, from a file or the web.
pub const DOCUMENT_BYTES_MAX: u64 = 32 << 20;
/// Bytes of text that a document may give.
pub const DOCUMENT_TEXT_BYTES_MAX: usize = 8 << 20;
/// Milliseconds that reading a document may take.
pub const DOCUMENT_MS_MAX: u64 = 20_000;
/// Bytes of memory that reading a document may take.
pub const DOCUMENT_MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Lines that `query_log` returns.
pub const LOG_LINES_MAX: usize = 1_000;
/// Bytes of log files that one query looks through.
pub const LOG_BYTES_MAX: u64 = 2 << 30;
/// Series that `query_metrics` returns.
pub const SERIES_MAX: usize = 50;
/// Points of one series that `query_metrics` returns.
pub const POINTS_MAX: usize = 60;
/// Entries that are read of one foreign file or folder (`.claude/`, `.mcp.json`).
pub const FOREIGN_ENTRIES_MAX: usize = 100;
/// Lines with invisible characters that are named of one text.
pub const HIDDEN_LINES_MAX: usize = 50;
/// Bytes of one instruction file (AGENTS.md, CLAUDE.md and what they import).
pub const INSTRUCTION_FILE_BYTES_MAX: usize = 40 << 10;
/// Bytes of all instruction files together.
pub const INSTRUCTIONS_BYTES_MAX: usize = 120 << 10;
/// Depth of nested `@imports`.
pub const IMPORT_HOPS_MAX: usize = 4;
/// Instruction files and imports together.
pub const INSTRUCTION_FILES_MAX: usize = 64;
/// Bytes of an agent's own notes in its prompt.
pub const NOTES_BYTES_MAX: usize = 16 << 10;
/// Lines of an agent's own notes in its prompt.
pub const NOTES_LINES_MAX: usize = 200;
/// Bytes of one message from a user.
pub const MESSAGE_BYTES_MAX: usize = 12 << 20;
/// Bytes of standard input taken as context.
pub const STDIN_BYTES_MAX: usize = 10 << 20;
/// Messages a user may queue while a turn runs.
pub const QUEUE_MAX: usize = 20;
/// Events bigger than this live as blobs beside the log.
pub const INLINE_BYTES_MAX: usize = 4 << 10;
/// Entries between two seals.
pub const SEAL_EVERY: u64 = 4_096;
/// Entries of an agent's stream before its first snapshot.
pub const SNAPSHOT_ENTRIES_MIN: u64 = 512;
/// Entries of a plan's stream before its first snapshot; folding fewer is fast.
pub const PLAN_SNAPSHOT_ENTRIES_MIN: u64 = 4_096;
/// Notices that a frontend may fall behind before it is disconnected with an error.
pub const NOTICES_MAX: usize = 1 << 20;
/// Unread notices from which on a frontend gets only events, without live output.
pub const NOTICES_SHOWN_MAX: usize = 512;
/// Pieces of answers that wait for one reader of the stream; the rest of an answer that does not fit is left out.
pub const STREAM_PIECES_MAX: usize = 1_024;
/// Bytes of one text in the stream: an answer, a tool's result, a message.
pub const STREAM_TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a tool's arguments in the stream.
pub const STREAM_ARGS_BYTES_MAX: usize = 16 << 10;
/// Tasks of a plan that one event lists.
pub const STREAM_TASKS_MAX: usize = 256;
/// Commands waiting for an agent's loop.
pub const CONTROLS_MAX: usize = 64;
/// Commits waiting for the journal's writer.
pub const COMMITS_QUEUED_MAX: usize = 1_024;
/// Commits that share one transaction.
pub const COMMITS_GROUPED_MAX: usize = 256;
/// Bytes of one server-sent event.
pub const SSE_EVENT_BYTES_MAX: usize = 16 << 20;
/// Bytes of one model answer.
pub const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Bytes of an error body that are read from a provider.
pub const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// Share of the context window (percent) above which old turns leave the window.
pub const WINDOW_HIGH_PERCENT: u64 = 90;
/// Share of the context window (percent) that is left after old turns have left it.
pub const WINDOW_LOW_PERCENT: u64 = 60;
/// Share of the window (percent) at which a turn begins with a summary of the history, unless settings say otherwise.
pub const COMPACT_AT_PERCENT: u64 = 80;
/// Share of the window (percent) that the newest messages keep when the rest becomes a summary.
pub const COMPACT_TAIL_PERCENT: u64 = 20;
/// Tokens that a summary may have.
pub const SUMMARY_TOKENS_MAX: u32 = 4_096;
/// Bytes of a message's text that the summarizing model is shown.
pub const SUMMARY_WORDS_BYTES_MAX: usize = 8 << 10;
/// Bytes of a tool's input or result that the summarizing model is shown.
pub const SUMMARY_RESULT_BYTES_MAX: usize = 1 << 10;
/// Bytes of the facts that are written from state beside a summary.
pub const FACTS_BYTES_MAX: usize = 16 << 10;
/// Tokens of the last call of a spent budget, which has no tools and hands back what the agent has.
pub const HAND_BACK_TOKENS: u32 = 1_024;
/// Bytes per token that no tokenizer exceeds on text: a request that is larger than the window even by this measure is
/// not sent.
pub const BYTES_PER_TOKEN_MAX: u64 = 8;
/// Tasks of one plan.
pub const PLAN_TASKS_MAX: usize = 10_000;
/// Tasks in a chain, each building on the one before.
pub const PLAN_DEPTH_MAX: usize = 1_000;
/// Tasks that one task may build on.
pub const TASK_NEEDS_MAX: usize = 1_000;
/// Edges of one plan.
pub const PLAN_EDGES_MAX: usize = 200_000;
/// Bytes of a task's description.
pub const TASK_TEXT_BYTES_MAX: usize = 64 << 10;
/// Outputs, checks or owned paths that one task may declare.
pub const TASK_CLAIMS_MAX: usize = 64;
/// Bytes of a path or a command that a task names.
pub const CLAIM_BYTES_MAX: usize = 4 << 10;
/// Bytes of a task's id.
pub const TASK_ID_BYTES_MAX: usize = 64;
/// Times a task is tried again, unless it says otherwise.
pub const TASK_RETRIES_MAX_DEFAULT: u32 = 2;
/// Retries that a task may ask for.
pub const TASK_RETRIES_MAX: u32 = 10;
/// Milliseconds that a task may take, unless it or its owner says otherwise.
pub const TASK_TIMEOUT_MS_DEFAULT: u64 = 30 * 60_000;
/// Wait before a failed task is tried again; doubles each time.
pub const TASK_BACKOFF_MS: u64 = 1_000;
/// The longest wait before a failed task is tried again.
pub const TASK_BACKOFF_MS_MAX: u64 = 60_000;
/// Consecutive unapproved revisions that are followed to find the plan that they revise.
pub const PLAN_REVISIONS_MAX: usize = 64;
/// Notes that a lead may add to one task after its plan was approved.
pub const TASK_NOTES_MAX: usize = 8;
/// Characters of one note.
pub const TASK_NOTE_CHARS_MAX: usize = 4_000;
/// Ready tasks that are examined for one whose paths are free.
pub const READY_SCANNED_MAX: usize = 256;
/// Bytes of one glob over paths.
pub const GLOB_BYTES_MAX: usize = 512;
/// Bytes of upstream results in a task's text.
pub const UPSTREAM_BYTES_MAX: usize = 64 << 10;
/// Bytes of one upstream result in a task's text; a larger one is left as a file to read.
pub const UPSTREAM_ITEM_BYTES_MAX: usize = 24 << 10;
/// Characters of a task's result in the message to the lead when the plan ends; `task_query` shows the rest.
pub const RESULT_TOLD_CHARS_MAX: usize = 2_000;
/// Characters of all results in that message: with many tasks, each gets less.
pub const RESULTS_TOLD_CHARS_MAX: usize = 24_000;
/// Characters of each result in that message, at least.
pub const RESULT_TOLD_CHARS_MIN: usize = 300;
/// Characters of a task's result that one page of `task_query` shows.
pub const RESULT_PAGE_CHARS: usize = 8_000;
/// Finished plans that `task_query` looks through, the newest.
pub const PLANS_LISTED_MAX: usize = 10;
/// Tasks of one plan that `task_query` lists.
pub const TASKS_LISTED_MAX: usize = 60;
/// Milliseconds that one check of a task may take.
pub const CHECK_MS_MAX: u64 = 10 * 60_000;
/// Checks of a plan that run at once before their tasks have changed anything; with more, the state before is unknown.
pub const CHECKS_BEFORE_MAX: usize = 4;
/// Files of a stopped task that are listed.
pub const FILES_LEFT_MAX: usize = 200;
/// Entries of a stream that are read at a time by a query that looks through all of it.
pub const STREAM_PAGE_ENTRIES: usize = 500;
/// Running tasks that the owner of another task is told about.
pub const BESIDE_TASKS_MAX: usize = 8;
/// Bytes of a failed check's output that are kept as evidence.
pub const EVIDENCE_BYTES_MAX: usize = 2 << 10;
/// Bytes of a member's earlier answer that are appended to its answer to a correction.
pub const EARLIER_ANSWER_BYTES_MAX: usize = 8 << 10;
/// Times the lead may have a failed task tried again before the user is asked.
pub const RULED_RETRIES_MAX: u32 = 2;
/// Bytes of a command line that is taken apart; a longer one is always asked about.
pub const COMMAND_BYTES_MAX: usize = 10_000;
/// Commands in one line.
pub const COMMAND_PARTS_MAX: usize = 64;
/// Bytes of one of the user's API keys from which on it is also searched for inside words.
pub const KEY_BYTES_SEARCHED_MIN: usize = 8;
/// API keys of the user that are removed from texts.
pub const KEYS_KNOWN_MAX: usize = 64;
/// Names that the glob patterns of one command may expand to.
pub const GLOB_NAMES_MAX: usize = 200;
/// Names that are read to expand one glob pattern.
pub const GLOB_LOOKED_MAX: usize = 10_000;
/// Folders that the rest of a command line may run in after its `cd`s.
pub const FOLDERS_MAX: usize = 8;
/// Seconds for which a command without a limit of its own may neither print nor transfer anything.
pub const COMMAND_IDLE_S_MAX: u32 = 30;
/// Milliseconds for which a connection of a command waits while a person is asked about its host.
pub const HOST_QUESTION_MS: u64 = 60_000;
/// Connections of one command at a time.
pub const COMMAND_CONNECTIONS_MAX: usize = 128;
/// Hosts that the end of a command names as blocked.
pub const BLOCKED_HOSTS_MAX: usize = 16;
/// Seconds that a command may take while an agent waits for it.
pub const COMMAND_S_MAX: u32 = 600;
/// Seconds that a command may take in the background.
pub const BACKGROUND_S_MAX: u32 = 24 * 3_600;
/// Commands that one agent has running in the background.
pub const BACKGROUND_MAX: usize = 8;
/// Background commands that one agent can query, finished ones included.
pub const BACKGROUND_KNOWN_MAX: usize = 32;
/// Seconds that an agent may wait for the output of a background command.
pub const BACKGROUND_WAIT_S_MAX: u32 = 300;
/// Depth of calls unless the user says otherwise: a called agent calls no other.
pub const CALL_DEPTH_DEFAULT: u32 = 1;
/// Depth of calls that the user can set.
pub const CALL_DEPTH_MAX: u32 = 2;
/// Agents that work for one caller at once.
pub const CALLS_PARALLEL_MAX: usize = 8;
/// Bytes of the text of one call.
pub const CALL_TEXT_BYTES_MAX: usize = 64 << 10;
/// Characters of a call's title on screen.
pub const CALL_TITLE_CHARS_MAX: usize = 60;
/// Cached answers of one expert; the oldest are dropped first.
pub const CACHE_ENTRIES_MAX: usize = 128;
/// Bytes of one cached answer: arguments, data and text. A larger one is not cached.
pub const CACHE_ENTRY_BYTES_MAX: usize = 32 << 10;
/// Characters of an agent's description in the list of agents that a model can call.
pub const CALLEE_ABOUT_CHARS_MAX: usize = 500;
/// Bytes of all these descriptions; the remaining agents are only named.
pub const CALLEES_ABOUT_BYTES_MAX: usize = 12 << 10;
/// Agents that are named in that list; the rest are only counted.
pub const CALLEES_NAMED_MAX: usize = 128;
/// Tools that one search finds.
pub const TOOLS_FOUND_MAX: usize = 5;
/// Names that an error about an unknown name lists.
pub const NAMES_TOLD_MAX: usize = 40;
/// Bytes of a key of the memory.
pub const MEMORY_KEY_BYTES_MAX: usize = 128;
/// Parts of a key of the memory.
pub const MEMORY_KEY_PARTS_MAX: usize = 8;
/// Bytes of one remembered value, as JSON.
pub const MEMORY_VALUE_BYTES_MAX: usize = 4 << 10;
/// Facts that one write may make.
pub const MEMORY_WRITE_FACTS_MAX: usize = 64;
/// Facts in one section of a board.
pub const MEMORY_FACTS_MAX: usize = 20_000;
/// Characters that are kept of a fact's quote.
pub const MEMORY_QUOTE_CHARS_MAX: usize = 200;
/// Characters that a quote must have to prove that the user said it; a Chinese character counts as three.
pub const MEMORY_QUOTE_WEIGHT_MIN: usize = 6;
/// Characters of a value about the user that may share no word with the user's messages, such as `C` or `vegetarian`.
pub const MEMORY_SHORT_FORM_WEIGHT_MAX: usize = 10;
/// Characters of such a value if it shares a word with the quote.
pub const MEMORY_NEAR_FORM_WEIGHT_MAX: usize = 24;
/// Failures that are kept for each agent under `agent_errors`, the newest.
pub const MEMORY_ERRORS_MAX: usize = 8;
/// Characters of one such failure, and of the parts of `dialog_context`.
pub const MEMORY_NOTE_CHARS_MAX: usize = 240;
/// Terms that a fact is found by.
pub const MEMORY_TERMS_MAX: usize = 128;
/// Characters of such a term.
pub const MEMORY_TERM_CHARS_MAX: usize = 32;
/// Tokens of the facts about the user that a lead always has.
pub const MEMORY_STANDING_TOKENS_MAX: u64 = 1_000;
/// Tokens of the facts that a turn recalls because they match its message.
pub const MEMORY_RECALL_TOKENS_MAX: u64 = 800;
/// Bytes of a personality.
pub const MEMORY_PERSONALITY_BYTES_MAX: usize = 4 << 10;
/// Facts that a turn recalls because they match its message.
pub const MEMORY_RECALLED_MAX: usize = 8;
/// Exchanges after which a conversation is searched for facts, even if none seems lasting.
pub const MEMORY_EXCHANGES_MAX: u32 = 6;
/// Bytes of a conversation that are searched for facts at a time.
pub const MEMORY_HANDED_BYTES_MAX: usize = 32 << 10;
/// Model rounds of one such search.
pub const MEMORY_ROUNDS_MAX: u32 = 6;
/// Times that the same exchanges are searched for facts.
pub const MEMORY_HANDED_TRIES_MAX: u32 = 3;
/// Times that a write to the memory is decided again because another write came first.
pub const MEMORY_WRITE_TRIES_MAX: u32 = 8;
/// Turns that are listed as told a fact.
pub const MEMORY_USES_MAX: usize = 50;
/// Characters of a message that such a turn is shown with.
pub const MEMORY_USE_CHARS_MAX: usize = 500;
/// Bytes of a file that memories are imported from.
pub const MEMORY_FILE_BYTES_MAX: usize = 256 << 10;

/// Consecutive turns of a teammate that only other teammates' messages begin. After them, if the messages form a chain
/// longer than `HOPS_MAX`, the teammate pauses until its lead or the user writes, and the lead is told.
pub const ECHOES_MAX: u32 = 20;
/// Length of a chain of messages between teammates, each written because of the one before. Many messages that do not
/// cause each other form no chain.
pub const HOPS_MAX: u32 = 40;
/// Consecutive turns of a lead without a message from the user, plus two for each teammate that it ever had; then it
/// reads no messages until the user writes.
pub const UNASKED_TURNS_MAX: u32 = 200;
/// Teammates that exist in one session at once.
pub const TEAMMATES_MAX: usize = 1_024;
/// Tasks of one agent that run in the background at once.
pub const BACKGROUND_TASKS_MAX: usize = 32;
/// Loops of a session up to which idle teammates keep theirs; above that, an idle teammate's loop ends and starts
/// again when a message arrives.
pub const TEAMMATES_SEATED_MAX: usize = 128;
/// Milliseconds that an agent that was asked to shut down has at least after the program was restarted.
pub const SHUTDOWN_RESUMED_MS: i64 = 30_000;
/// Teammates that a user starts at once.
pub const TEAMMATES_LOADED_MAX: usize = 64;
/// Characters of a teammate's name.
pub const TEAMMATE_NAME_CHARS_MAX: usize = 48;
/// Bytes of messages that one turn begins with; the rest wait for the next turn.
pub const MAIL_TOLD_BYTES_MAX: usize = 64 << 10;
/// Messages that may wait for one teammate; the sender of a further one is told that it is not delivered.
pub const MAIL_WAITING_MAX: usize = 1_000;
/// Closed requests that an agent remembers, to tell a late answer from a wrong one.
pub const REQUESTS_KEPT_MAX: usize = 256;
/// Seconds that a teammate has to finish after a shutdown request, unless the request says otherwise.
pub const SHUTDOWN_S_DEFAULT: u64 = 120;
/// Seconds that a shutdown request can allow.
pub const SHUTDOWN_S_MAX: u64 = 3_600;
/// Tasks in a session's shared list, completed ones included.
pub const LIST_TASKS_MAX: usize = 500;
/// Characters of the subject of a task in the shared list, and of the text that is shown while it is done.
pub const LIST_SUBJECT_CHARS_MAX: usize = 200;
/// Bytes of the description of a task in the shared list.
pub const LIST_DESCRIPTION_BYTES_MAX: usize = 16 << 10;
/// Bytes of the metadata of a task in the shared list, as JSON.
pub const LIST_METADATA_BYTES_MAX: usize = 4 << 10;
/// Tasks that a task in the shared list waits for.
pub const LIST_BLOCKERS_MAX: usize = 64;
/// Characters of the owner's name of a task in the shared list.
pub const LIST_OWNER_CHARS_MAX: usize = 64;
/// Agents that may give a task back; after that no agent claims it by itself.
pub const LIST_DECLINED_MAX: usize = 64;
/// Times that a change to the shared list is decided again because another change came first.
pub const LIST_WRITE_TRIES_MAX: u32 = 16;
/// Characters of an answer up to which it can be a mere announcement.
pub const ANNOUNCEMENT_CHARS_MAX: usize = 600;
/// Untrusted skills that are named at the start.
pub const UNTRUSTED_NAMED_MAX: usize = 8;
/// Earlier plans that a forecast uses, the newest.
pub const HISTORY_PLANS_MAX: usize = 20;
/// Tasks of earlier plans that a forecast uses.
pub const HISTORY_TASKS_MAX: usize = 200;
/// Files of a folder that are noted as approved when a command has made it with approval.
pub const APPROVED_FILES_MAX: usize = 1_000;
/// Bytes of the list of approvals that running commands share.
pub const APPROVED_BYTES_MAX: u64 = 4 << 20;
/// Milliseconds for which a git that holds its lock is waited for before new protected files are judged.
pub const GIT_WAIT_MS_MAX: u32 = 60_000;
/// Protected files that are reported one by one while one command runs; more are moved away without a report.
pub const SET_ASIDE_MAX: usize = 64;
/// Protected files that are each made read-only in the sandbox, those nearest to the project's folder first.
pub const NESTED_PROTECTED_MAX: usize = 500;
/// Files out of sight that are left out of one query of the history.
pub const HIDDEN_NAMES_MAX: usize = 2_000;
/// Bytes of streamed text that are held back because a secret may begin in them: longer than any private key.
pub const HELD_TEXT_BYTES_MAX: usize = 16 << 10;
