//! Every bound, with its name.
//!
//! A queue, loop, retry, payload or piece of context without a row here is a defect. What happens when a bound is
//! hit is a typed outcome at the place that meets it, never a silent cut.

/// Model rounds in one chat turn, unless the user says otherwise.
pub const ROUNDS_MAX_DEFAULT: u32 = 20;
/// Retries of one model call after its first attempt.
pub const RETRIES_MAX_DEFAULT: u32 = 3;
/// Wait before the first retry; doubles each time.
pub const RETRY_BASE_MS: u64 = 1_000;
/// The longest wait before a call of a plan is made again while the model server cannot be reached. Such a call is made
/// again until the server is back.
pub const OUTAGE_RETRY_MS_MAX: u64 = 60_000;
/// Errors (HTTP 5xx) that a model server answers one call of a plan with before the task fails: half an hour of tries.
pub const SERVER_ERRORS_MAX: u32 = 30;
/// Milliseconds without new content after which a streamed answer is given up, unless settings say otherwise.
pub const PROGRESS_MS_DEFAULT: u64 = 10 * 60_000;
/// Bytes of new content that count as progress: pings, empty pieces and a byte now and then do not.
pub const PROGRESS_BYTES_MIN: usize = 64;
/// Output tokens that are charged for a call whose process died, because the received part is unknown.
pub const LOST_OUTPUT_TOKENS: u32 = 256;
/// The longest wait that a provider's `retry-after` can ask of us.
pub const RETRY_AFTER_MS_MAX: u64 = 5 * 60_000;
/// Identical answers (same tools, same input) in a row before the model is told so.
pub const REPEATS_WARNED: u32 = 3;
/// Identical answers in a row before the turn ends, told so at each. Waiting for something by looking again and again
/// is legitimate for a while, so this is generous; the round limit is what bounds a chat turn.
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
/// Days after which the outputs of an agent that keeps no more are removed.
pub const KEPT_DAYS_MAX: u64 = 14;
/// Bytes of all files in one folder of somebody's own (`@files`, `@data`) …
pub const OWN_BYTES_MAX: u64 = 64 << 20;
/// … and names of files and folders there.
pub const OWN_NAMES_MAX: usize = 2_000;
/// Bytes of one line that says how far a tool is.
pub const PROGRESS_BYTES_MAX: usize = 200;
/// Lines that say how far a tool is: the last ones that a command has printed.
pub const PROGRESS_LINES_MAX: usize = 5;
/// Milliseconds between two of these reports, at least.
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
/// Bytes of a file that are kept of how it was, so that a change of it can be taken back.
pub const REWIND_FILE_BYTES_MAX: u64 = 8 << 20;
/// Bytes of the files that are put back at once.
pub const REWIND_BYTES_MAX: u64 = 256 << 20;
/// Files that are put back at once, and that one step may change and be taken back.
pub const REWIND_FILES_MAX: usize = 10_000;
/// Lines of the outline of a project's files that a lead is told.
pub const OUTLINE_LINES_MAX: usize = 40;
/// Bytes of these lines.
pub const OUTLINE_BYTES_MAX: usize = 1_800;
/// Names in one line of it.
pub const OUTLINE_NAMES_MAX: usize = 20;
/// Names that are looked at for it.
pub const OUTLINE_ENTRIES_MAX: usize = 2_000;
/// Names that `list_dir` returns.
pub const LIST_ENTRIES_MAX: usize = 1_000;
/// Matches that `search_code` returns.
pub const SEARCH_MATCHES_MAX: usize = 200;
/// Bytes of one matching line that `search_code` returns.
pub const SEARCH_LINE_BYTES_MAX: usize = 400;
/// Bytes of one page that `http_get` takes.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
/// Milliseconds that one page, or one question to a service, may take.
pub const PAGE_MS_MAX: u64 = 30_000;
/// Places that `geocode` returns.
pub const PLACES_MAX: u32 = 10;
/// Redirects that `http_get` follows.
pub const REDIRECTS_MAX: usize = 5;
/// Bytes of a document (PDF, office files) that is read.
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
/// Hops that `@imports` may take.
pub const IMPORT_HOPS_MAX: usize = 4;
/// Instruction files and imports together.
pub const INSTRUCTION_FILES_MAX: usize = 64;
/// Bytes of an agent's own notes that it is told.
pub const NOTES_BYTES_MAX: usize = 16 << 10;
/// Lines of them.
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
/// Entries of an agent's stream before a first snapshot is worth its bytes.
pub const SNAPSHOT_ENTRIES_MIN: u64 = 512;
/// Entries of a plan's stream before a first snapshot is worth its bytes: fewer are folded in a moment.
pub const PLAN_SNAPSHOT_ENTRIES_MIN: u64 = 4_096;
/// Notices that a face may fall behind before it is told that it has, and nothing more …
pub const NOTICES_MAX: usize = 1 << 20;
/// … and from which on it is only told what happened: what is only for show is left out.
pub const NOTICES_SHOWN_MAX: usize = 512;
/// Pieces of answers that wait for one reader of the stream; the rest of an answer that does not fit is left out.
pub const STREAM_PIECES_MAX: usize = 1_024;
/// Bytes of one text in the stream: an answer, a tool's result, a letter.
pub const STREAM_TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes of what a tool is given, in the stream.
pub const STREAM_ARGS_BYTES_MAX: usize = 16 << 10;
/// Tasks of a plan that one event lists.
pub const STREAM_TASKS_MAX: usize = 256;
/// Orders waiting for an agent's loop.
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
/// Share of the context window (percent) above which old turns leave the window …
pub const WINDOW_HIGH_PERCENT: u64 = 90;
/// … until at most this share is left.
pub const WINDOW_LOW_PERCENT: u64 = 60;
/// Share of the window (percent) at which a turn begins with a summary of what came before, unless settings say otherwise.
pub const COMPACT_AT_PERCENT: u64 = 80;
/// Share of the window (percent) that the newest messages keep when the rest becomes a summary.
pub const COMPACT_TAIL_PERCENT: u64 = 20;
/// Tokens that a summary may have.
pub const SUMMARY_TOKENS_MAX: u32 = 4_096;
/// Bytes of a message's words that are shown to whoever writes a summary …
pub const SUMMARY_WORDS_BYTES_MAX: usize = 8 << 10;
/// … and of a tool's input or result.
pub const SUMMARY_RESULT_BYTES_MAX: usize = 1 << 10;
/// Bytes of what is kept beside a summary without asking a model.
pub const FACTS_BYTES_MAX: usize = 16 << 10;
/// Tokens that the last, tools-off "hand back what you have" call may write.
pub const HAND_BACK_TOKENS: u32 = 1_024;
/// Bytes per token that no tokenizer exceeds on text: what is larger than the window even so is not worth sending.
pub const BYTES_PER_TOKEN_MAX: u64 = 8;
/// Tasks of one plan.
pub const PLAN_TASKS_MAX: usize = 10_000;
/// Tasks in a row, each building on the one before.
pub const PLAN_DEPTH_MAX: usize = 1_000;
/// Tasks that one task may build on.
pub const TASK_NEEDS_MAX: usize = 1_000;
/// Edges of one plan.
pub const PLAN_EDGES_MAX: usize = 200_000;
/// Bytes of what one task says is to be done.
pub const TASK_TEXT_BYTES_MAX: usize = 64 << 10;
/// Outputs, checks or owned paths that one task may declare.
pub const TASK_CLAIMS_MAX: usize = 64;
/// Bytes of a task's id.
pub const TASK_ID_BYTES_MAX: usize = 64;
/// Times a task is tried again, unless it says otherwise.
pub const TASK_RETRIES_MAX_DEFAULT: u32 = 2;
/// Times a task may ask to be tried again.
pub const TASK_RETRIES_MAX: u32 = 10;
/// Milliseconds before a task is given up, unless it or its owner says otherwise.
pub const TASK_TIMEOUT_MS_DEFAULT: u64 = 30 * 60_000;
/// Wait before a failed task is tried again; doubles each time …
pub const TASK_BACKOFF_MS: u64 = 1_000;
/// … up to this.
pub const TASK_BACKOFF_MS_MAX: u64 = 60_000;
/// Revisions in a row, none of them approved, through which the plan is found that they revise.
pub const PLAN_REVISIONS_MAX: usize = 64;
/// Notes that a lead may add to one task after its plan was approved …
pub const TASK_NOTES_MAX: usize = 8;
/// … and characters of each of them.
pub const TASK_NOTE_CHARS_MAX: usize = 4_000;
/// Ready tasks that are looked at for one whose paths are free.
pub const READY_SCANNED_MAX: usize = 256;
/// Bytes of one glob over paths.
pub const GLOB_BYTES_MAX: usize = 512;
/// Bytes of upstream results that a task's text carries …
pub const UPSTREAM_BYTES_MAX: usize = 64 << 10;
/// … and of one of them; a larger one is left as a file to read.
pub const UPSTREAM_ITEM_BYTES_MAX: usize = 24 << 10;
/// Characters of a task's result that its lead is told when the plan is over; `task_query` shows the rest.
pub const RESULT_TOLD_CHARS_MAX: usize = 2_000;
/// Characters of all results in one such message: of many tasks, each gets less …
pub const RESULTS_TOLD_CHARS_MAX: usize = 24_000;
/// … but at least this.
pub const RESULT_TOLD_CHARS_MIN: usize = 300;
/// Characters of a task's result that one page of `task_query` shows.
pub const RESULT_PAGE_CHARS: usize = 8_000;
/// Finished plans that `task_query` looks through, the newest.
pub const PLANS_LISTED_MAX: usize = 10;
/// Tasks of one plan that `task_query` lists.
pub const TASKS_LISTED_MAX: usize = 60;
/// Milliseconds that one check of a task may take.
pub const CHECK_MS_MAX: u64 = 10 * 60_000;
/// Checks of a plan that run at once before their tasks have changed anything; of more, nothing is known.
pub const CHECKS_BEFORE_MAX: usize = 4;
/// Files of a stopped task that are named.
pub const FILES_LEFT_MAX: usize = 200;
/// Entries of a stream that are read at a time by a query that looks through all of it.
pub const STREAM_PAGE_ENTRIES: usize = 500;
/// Tasks under way that the owner of another one is told of.
pub const BESIDE_TASKS_MAX: usize = 8;
/// Bytes of a failed check's output that are kept as evidence.
pub const EVIDENCE_BYTES_MAX: usize = 2 << 10;
/// Times the lead may have a failed task tried again before the user is asked.
pub const RULED_RETRIES_MAX: u32 = 2;
/// Bytes of a command line that is taken apart; a longer one is always asked about.
pub const COMMAND_BYTES_MAX: usize = 10_000;
/// Commands in one line.
pub const COMMAND_PARTS_MAX: usize = 64;
/// Letters of a key of our own from which on it is searched for inside words, too.
pub const KEY_BYTES_SEARCHED_MIN: usize = 8;
/// Keys of our own that are taken out of texts.
pub const KEYS_KNOWN_MAX: usize = 64;
/// Names that the patterns in one command may stand for.
pub const GLOB_NAMES_MAX: usize = 200;
/// Names that are looked at for one pattern.
pub const GLOB_LOOKED_MAX: usize = 10_000;
/// Folders that the rest of a line may be in after its `cd`s.
pub const FOLDERS_MAX: usize = 8;
/// Seconds that a command may take unless told otherwise.
pub const COMMAND_S_DEFAULT: u32 = 30;
/// Seconds that a command may take while an agent waits for it.
pub const COMMAND_S_MAX: u32 = 600;
/// Seconds that a command may take in the background.
pub const BACKGROUND_S_MAX: u32 = 24 * 3_600;
/// Commands that one agent has running in the background.
pub const BACKGROUND_MAX: usize = 8;
/// Commands in the background that one agent can look at, those that are over included.
pub const BACKGROUND_KNOWN_MAX: usize = 32;
/// Seconds that an agent may wait for something to come out of one of them.
pub const BACKGROUND_WAIT_S_MAX: u32 = 300;
/// How deep calls go unless the user says otherwise: whoever is called calls nobody …
pub const CALL_DEPTH_DEFAULT: u32 = 1;
/// … and how deep they may be set to go.
pub const CALL_DEPTH_MAX: u32 = 2;
/// Agents that work for one caller at once.
pub const CALLS_PARALLEL_MAX: usize = 8;
/// Bytes of what one call hands over.
pub const CALL_TEXT_BYTES_MAX: usize = 64 << 10;
/// Letters of what a call is about, as people see it.
pub const CALL_TITLE_CHARS_MAX: usize = 60;
/// Answers of one expert that are kept to be used again; the oldest go first.
pub const CACHE_ENTRIES_MAX: usize = 128;
/// Bytes of one answer that is kept: its arguments, what was found and what was said. A larger one is not.
pub const CACHE_ENTRY_BYTES_MAX: usize = 32 << 10;
/// Letters of what somebody who can be called is for, as a model sees it.
pub const CALLEE_ABOUT_CHARS_MAX: usize = 500;
/// Bytes of what all of them are for; the rest are only named.
pub const CALLEES_ABOUT_BYTES_MAX: usize = 12 << 10;
/// Of how many a model sees the names; the rest are only counted.
pub const CALLEES_NAMED_MAX: usize = 128;
/// Tools that one search finds.
pub const TOOLS_FOUND_MAX: usize = 5;
/// Names that one message about an unknown name lists.
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
/// Letters of the words that a fact follows from, as they are kept.
pub const MEMORY_QUOTE_CHARS_MAX: usize = 200;
/// Letters of such words that prove that somebody said them; a Chinese character counts for three.
pub const MEMORY_QUOTE_WEIGHT_MIN: usize = 6;
/// Letters of a value about the user that needs no word of theirs beside the quote, such as `C` or `vegetarian`.
pub const MEMORY_SHORT_FORM_WEIGHT_MAX: usize = 10;
/// The same for a value that shares a word with the quote.
pub const MEMORY_NEAR_FORM_WEIGHT_MAX: usize = 24;
/// Failures that are kept under `agent_errors` for each agent, the newest.
pub const MEMORY_ERRORS_MAX: usize = 8;
/// Letters of one such failure, and of the parts of `dialog_context`.
pub const MEMORY_NOTE_CHARS_MAX: usize = 240;
/// Terms that a fact is found by.
pub const MEMORY_TERMS_MAX: usize = 128;
/// Letters of such a term.
pub const MEMORY_TERM_CHARS_MAX: usize = 32;
/// Tokens of what a lead is always told about its user …
pub const MEMORY_STANDING_TOKENS_MAX: u64 = 1_000;
/// … and of what a turn is told because of its words.
pub const MEMORY_RECALL_TOKENS_MAX: u64 = 800;
/// Bytes of a personality.
pub const MEMORY_PERSONALITY_BYTES_MAX: usize = 4 << 10;
/// Facts that a turn is told because of its words.
pub const MEMORY_RECALLED_MAX: usize = 8;
/// Exchanges after which what was said is looked at, whatever it was.
pub const MEMORY_EXCHANGES_MAX: u32 = 6;
/// Bytes of a conversation that are handed over for a look.
pub const MEMORY_HANDED_BYTES_MAX: usize = 32 << 10;
/// Model rounds of such a look.
pub const MEMORY_ROUNDS_MAX: u32 = 6;
/// Times that the same exchanges are handed to whoever looks for facts in them.
pub const MEMORY_HANDED_TRIES_MAX: u32 = 3;
/// Times that a write to the memory is decided anew because somebody else wrote first.
pub const MEMORY_WRITE_TRIES_MAX: u32 = 8;
/// Bytes of a file that memories are imported from.
pub const MEMORY_FILE_BYTES_MAX: usize = 256 << 10;

/// Turns in a row that only colleagues' messages begin, where each message answers the one before (`HOPS_MAX`): the rounds of a
/// debate without the lead. After that the teammate rests until its lead or the user writes, and the lead is told.
pub const ECHOES_MAX: u32 = 20;
/// Messages in a row, each written because of the one before, that are still about something. A teammate that many write to,
/// once each, is in no circle, however many messages come.
pub const HOPS_MAX: u32 = 40;
/// Turns in a row that a lead begins without a word from the user, besides two for each teammate that it ever had; then it
/// leaves its mail until the user writes.
pub const UNASKED_TURNS_MAX: u32 = 200;
/// Teammates of one session that are there at once.
pub const MATES_MAX: usize = 1_024;
/// Tasks of one agent that run in the background at once.
pub const BACKGROUND_TASKS_MAX: usize = 32;
/// Loops of a session with which those teammates stay seated that have nothing to do; with more they go home and are
/// seated again when there is mail.
pub const MATES_SEATED_MAX: usize = 128;
/// Milliseconds that whoever was asked to shut down has at least once the program has been started again.
pub const SHUTDOWN_RESUMED_MS: i64 = 30_000;
/// Teammates that a user lets begin at once.
pub const MATES_LOADED_MAX: usize = 64;
/// Characters of a teammate's name.
pub const MATE_NAME_CHARS_MAX: usize = 48;
/// Bytes of mail that one turn begins with; what is more waits for the next.
pub const MAIL_TOLD_BYTES_MAX: usize = 64 << 10;
/// Letters that may wait for one teammate; whoever writes more is told so.
pub const MAIL_WAITING_MAX: usize = 1_000;
/// Answered requests that an agent still knows, to tell a late answer from a wrong one.
pub const REQUESTS_KEPT_MAX: usize = 256;
/// Seconds that a teammate has to finish after it was asked to shut down, unless somebody says otherwise.
pub const SHUTDOWN_S_DEFAULT: u64 = 120;
/// The most that somebody can say.
pub const SHUTDOWN_S_MAX: u64 = 3_600;
/// Tasks in the list that a session's agents share, those that are completed included.
pub const LIST_TASKS_MAX: usize = 500;
/// Letters of the subject of one, and of what is shown while it is done.
pub const LIST_SUBJECT_CHARS_MAX: usize = 200;
/// Bytes of the description of one.
pub const LIST_DESCRIPTION_BYTES_MAX: usize = 16 << 10;
/// Bytes of what is kept beside one, as JSON.
pub const LIST_METADATA_BYTES_MAX: usize = 4 << 10;
/// Tasks that one waits for.
pub const LIST_BLOCKERS_MAX: usize = 64;
/// Letters of the name of whoever one is meant for.
pub const LIST_OWNER_CHARS_MAX: usize = 64;
/// Those who gave a task back one after the other; then nobody takes it by themselves any more.
pub const LIST_DECLINED_MAX: usize = 64;
/// Times that a change to the list is decided anew because somebody else changed it first.
pub const LIST_WRITE_TRIES_MAX: u32 = 16;
/// Characters of an answer that can be a mere announcement; a longer one says more than that.
pub const ANNOUNCEMENT_CHARS_MAX: usize = 600;
/// Skills that are named where a start tells of those that are not trusted yet.
pub const UNTRUSTED_NAMED_MAX: usize = 8;
/// Plans of before that a forecast looks at, the last ones.
pub const HISTORY_PLANS_MAX: usize = 20;
/// Tasks of them.
pub const HISTORY_TASKS_MAX: usize = 200;
/// Protected files that are noted as approved while one command runs.
pub const APPROVED_FILES_MAX: usize = 1_000;
/// Milliseconds between two looks at the folders of a running command for new protected files.
pub const PROTECTED_CHECK_MS: u64 = 200;
/// Protected files that are moved away while one command runs; those beyond it are moved when it ends.
pub const SET_ASIDE_MAX: usize = 64;
/// Nested files that instruct agents and are each made read-only in the sandbox, those nearest to the project's folder first.
pub const NESTED_PROTECTED_MAX: usize = 200;
/// Bytes of a streamed text that are held back because a secret may begin in them: longer than any private key.
pub const HELD_TEXT_BYTES_MAX: usize = 16 << 10;
