//! Whole teams, killed at the commits of their journal: 100,000 schedules of eight stories, with the real runtime.
//!
//! `sim [--schedules N] [--seed N] [--plants] [--json]`. A seed is a schedule: which story, where each process dies and
//! how, and who goes first when several write. The stories take turns, and in each of them one death at a commit, in
//! each of the ways, takes turns with several that follow chance; so a few schedules have some of everything. A story that
//! works in a copy runs git, which takes a hundred times as long: once each of its commits was died at, it has a turn in many.
//! `--seed` plays one schedule again; `--plants` shows that each planted bug is caught.
//!
//! Beyond a schedule ids are made by chance, and tools run on threads of their own. The clock stands still while anybody
//! has something to do.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for those who test")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a proof that cannot run must stop loudly")]

mod oracle;
mod plants;
mod play;
mod stories;
mod team;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use max_team_journal::{CrashPoint, Journal};
use max_team_llm::Replay;
use serde_json::json;

use crate::oracle::Outcomes;
use crate::plants::{PLANTS, Plant};

/// How long a dead process waits for its tools.
const TOOLS_END_MAX: Duration = Duration::from_secs(10);
use crate::play::World;
use crate::stories::{STORIES, Story};
use crate::team::Ledger;

/// Commits of a process that nobody kills; a team that needs more does not come to an end.
const COMMITS_MAX: u64 = 400;
/// Deaths in one schedule that follows chance.
const DEATHS_MAX: u64 = 5;
/// Characters that are shown of what is said about a bug.
const WORDS_MAX: usize = 200;
/// Commits of which each is died at once, in each way; a story that needs more would not be swept to its end. A prime,
/// so that any step meets all of them.
const SWEPT: u64 = 61;
/// From one commit that is died at to the next, so that a few of them are spread over the whole story.
const STEP: u64 = 23;
/// Commits that a process needs to find its way back; the next one may die meanwhile.
const BACK: u64 = 6;
/// Schedules of its story within which a planted bug must be caught. The rarest one is caught after 120 of them on average.
const PLANTED_MAX: u64 = 1_600;

/// Turns of a story that works in a copy before others take most of them: each of its commits was died at by then, and each
/// planted bug of its own was looked for …
const COPIED_TURNS: u64 = 400;
/// … and one turn in so many is its own after that.
const COPIED_EVERY: u64 = 64;

/// Numbers that look like chance, the same for the same seed.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound.max(1)
    }
}

/// What a seed stands for.
#[derive(Debug, Clone)]
struct Schedule {
    story: usize,
    deaths: Vec<(CrashPoint, u64)>,
    /// Who lets others go first; nobody where each commit is to be the one that it was when nobody died.
    order: Option<Random>,
}

/// A story as it goes when nobody dies.
#[derive(Debug)]
struct Calm {
    story: &'static Story,
    outcomes: Outcomes,
    commits: u64,
}

/// What a schedule has cost.
#[derive(Debug, Default, Clone, Copy)]
struct Cost {
    deaths: u64,
    commits: u64,
    /// Model calls that were made again because their answers had not been stored.
    again: u64,
}

impl Schedule {
    fn of(seed: u64, calm: &[Calm]) -> Self {
        let stories = calm.len() as u64;
        let (turn, whose) = (seed / stories, usize::try_from(seed % stories).unwrap_or_default());
        let is_others = calm[whose].story.copied && turn >= COPIED_TURNS && !turn.is_multiple_of(COPIED_EVERY);
        let step = 1 + usize::try_from(turn).unwrap_or_default() % (calm.len() - 1);
        let story = if is_others { (whose + step) % calm.len() } else { whose };
        let commits = calm[story].commits;
        if turn.is_multiple_of(2)
            && let Some(death) = Self::swept(turn / 2).filter(|(_, commit)| *commit <= commits)
        {
            return Self { story, deaths: vec![death], order: None };
        }
        let (mut random, mut left) = (Random::new(seed), commits);
        let deaths = (0..=random.below(DEATHS_MAX)).map(|_| {
            let death = match random.below(10) {
                0 => CrashPoint::PowerCut,
                1..=5 => CrashPoint::Before,
                _ => CrashPoint::After,
            };
            // Threads make a commit more or less of it; the same seed must not mean something else then.
            let commit = 1 + random.below(SWEPT) * left / SWEPT;
            left = left.saturating_sub(commit).max(BACK);
            (death, commit)
        });
        Self { story, deaths: deaths.collect(), order: Some(random) }
    }

    /// The death of this number among those at each commit, in each way.
    fn swept(at: u64) -> Option<(CrashPoint, u64)> {
        let death =
            [CrashPoint::After, CrashPoint::Before, CrashPoint::PowerCut][usize::try_from(at % 3).unwrap_or_default()];
        (at / 3 < SWEPT).then_some((death, 1 + at / 3 * STEP % SWEPT))
    }
}

/// Plays a story with processes that die; says what has come of it.
fn run(story: &'static Story, schedule: &Schedule, plant: Option<&Plant>) -> Result<(Outcomes, Cost), String> {
    let replay = Replay::read(story.recording).unwrap();
    let folder = Folder::new();
    if story.copied {
        folder.control();
    }
    let mut world = World {
        story,
        root: &folder.0,
        ledger: Ledger::default(),
        accepted: BTreeSet::new(),
        shown: Vec::new(),
        past: Vec::new(),
    };
    let (mut journal, mut cost) = (Journal::memory(), Cost::default());
    let commits = Arc::new(AtomicU64::new(0));
    for life in 0..=schedule.deaths.len() {
        let finished = oracle::answers(&journal)?;
        let doom = schedule.deaths.get(life).copied();
        let is_runaway = doom.is_none();
        let doom = doom.unwrap_or((CrashPoint::After, COMMITS_MAX));
        disturb(&journal, schedule, life, &commits, plant);
        let before = replay.calls();
        let is_over = live(&mut world, &journal, doom, replay.clone())?;
        let calls = replay.calls();
        oracle::paid_once(&finished, &before, &calls)?;
        cost.again = calls.values().map(|times| u64::from(times - 1)).sum();
        cost.commits = commits.load(Ordering::Relaxed);
        if is_over {
            oracle::at_rest(&world, &journal).inspect_err(|_| trace(&journal))?;
            oracle::paid_once(&oracle::answers(&journal)?, &calls, &calls)?;
            return Ok((oracle::outcomes(&world, &journal)?, cost));
        }
        if is_runaway {
            break;
        }
        cost.deaths += 1;
        journal = journal.reopen().map_err(|error| error.to_string())?;
        if doom.0 == CrashPoint::PowerCut {
            world.lose_power();
        }
        oracle::after_death(&world, &journal)?;
    }
    Err("it does not come to an end".into())
}

/// The whole log, for whoever wants to see how it came about.
fn trace(journal: &Journal) {
    if std::env::var_os("SIM_TRACE").is_some() {
        for entry in journal.read_all(0, usize::MAX).unwrap_or_default() {
            let payload = String::from_utf8_lossy(entry.payload.as_deref().unwrap_or_default()).into_owned();
            eprintln!(
                "{} {} {}: {}",
                entry.seq,
                entry.stream,
                entry.event,
                payload.chars().take(300).collect::<String>()
            );
        }
    }
}

/// Lets others go first now and then, counts, and plants the bug.
fn disturb(journal: &Journal, schedule: &Schedule, life: usize, commits: &Arc<AtomicU64>, plant: Option<&Plant>) {
    let mut order = schedule.order.clone();
    if let Some(order) = &mut order {
        order.0 ^= (life as u64) << 32;
    }
    let commits = Arc::clone(commits);
    journal.wait_before(move || {
        commits.fetch_add(1, Ordering::Relaxed);
        order.as_mut().map_or(0, |order| u32::try_from(order.below(4)).unwrap_or_default())
    });
    if let Some(plant) = plant {
        journal.sabotage(plant.bend);
    }
}

/// One process; whether everything was over before it died.
fn live(
    world: &mut World<'_>,
    journal: &Journal,
    (death, commit): (CrashPoint, u64),
    replay: Replay,
) -> Result<bool, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let died = journal.die(death, commit);
    let over = runtime.block_on(async {
        tokio::select! {
            biased;
            () = died => Ok(false),
            played = world.live(journal, replay) => played.map(|()| true),
        }
    });
    // Everything stops where it stands; only what a tool has begun is carried to its end. A thread that waits for a commit of
    // the dead process waits for ever.
    runtime.shutdown_timeout(TOOLS_END_MAX);
    over
}

/// A project of its own for each play, where files cost the least.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("max-team-sim-{}-{count}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        for name in ["a.txt", "b.txt"] {
            std::fs::write(path.join(name), "one\n").unwrap();
        }
        Self(path)
    }

    /// Puts it under version control, of which a copy is made.
    fn control(&self) {
        let made = Command::new("git").args(["init", "-q"]).current_dir(&self.0).status().unwrap();
        assert!(made.success(), "a copy is made of a repository");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// One schedule, against how the story goes when nobody dies.
fn judge(seed: u64, calm: &[Calm], plant: Option<&Plant>) -> Result<Cost, String> {
    let schedule = Schedule::of(seed, calm);
    let told = |why: String| {
        let story = STORIES.get(schedule.story).map_or("", |story| story.name);
        format!("seed {seed}: `{story}` with {:?}: {why}", schedule.deaths)
    };
    let calm = calm.get(schedule.story).ok_or("no story")?;
    let (outcomes, cost) = run(calm.story, &schedule, plant).map_err(told)?;
    // After a power cut a model is asked again about files that may be written already; it could say something else.
    let is_cut = schedule.deaths.iter().any(|(death, _)| *death == CrashPoint::PowerCut);
    if outcomes != calm.outcomes && !is_cut {
        return Err(told(format!("it came to another end:\n{outcomes:#?}\nundisturbed:\n{:#?}", calm.outcomes)));
    }
    Ok(cost)
}

fn calm() -> Result<Vec<Calm>, String> {
    let nobody = Schedule { story: 0, deaths: Vec::new(), order: None };
    let calm = STORIES.iter().map(|story| {
        let (outcomes, cost) = run(story, &nobody, None).map_err(|why| format!("`{}`: {why}", story.name))?;
        if cost.commits > SWEPT {
            return Err(format!("`{}` takes {} commits, and only {SWEPT} are swept", story.name, cost.commits));
        }
        Ok(Calm { story, outcomes, commits: cost.commits })
    });
    calm.collect()
}

/// Plays schedules on all processors; the first that fails, if one does.
fn many(schedules: u64, calm: &[Calm]) -> (Cost, Option<String>) {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (all, failed) = (Mutex::new(Cost::default()), Mutex::new(None));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= schedules {
                        return;
                    }
                    match judge(seed, calm, None) {
                        Ok(cost) => {
                            let mut all = all.lock().unwrap();
                            all.deaths += cost.deaths;
                            all.commits += cost.commits;
                            all.again += cost.again;
                        }
                        Err(why) => {
                            stop.store(true, Ordering::Relaxed);
                            failed.lock().unwrap().get_or_insert(why);
                        }
                    }
                }
            });
        }
    });
    (all.into_inner().unwrap(), failed.into_inner().unwrap())
}

/// The first schedule of its story that a bug is caught by, and what is said about it.
fn caught(plant: &Plant, calm: &[Calm]) -> Option<(u64, String)> {
    let story = calm.iter().position(|calm| calm.story.name == plant.story)?;
    let noticed = |seed| Some((seed, judge(seed, calm, Some(plant)).err()?));
    let seeds = (0..PLANTED_MAX).map(|turn| turn * calm.len() as u64 + story as u64);
    seeds.filter_map(noticed).find(|(_, why)| why.contains(plant.caught_as))
}

#[derive(Debug, Default)]
struct Wanted {
    schedules: Option<u64>,
    seed: Option<u64>,
    plants: bool,
    json: bool,
}

fn wanted() -> Result<Wanted, String> {
    let (mut wanted, mut words) = (Wanted::default(), std::env::args().skip(1));
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or(format!("`{word}` needs a number"));
        match word.as_str() {
            "--schedules" => wanted.schedules = Some(number()?),
            "--seed" => wanted.seed = Some(number()?),
            "--plants" => wanted.plants = true,
            "--json" => wanted.json = true,
            _ => return Err(format!("`{word}` is not known: sim [--schedules N] [--seed N] [--plants] [--json]")),
        }
    }
    Ok(wanted)
}

fn plants(calm: &[Calm], json: bool) -> bool {
    let (next, missed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(plant) = PLANTS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = caught(plant, calm);
                    let is_caught = found.is_some();
                    missed.fetch_or(!is_caught, Ordering::Relaxed);
                    let (seed, why) = found.unwrap_or((PLANTED_MAX, "nobody noticed".into()));
                    let (name, why) = (plant.name, why.lines().next().unwrap_or_default().chars().take(WORDS_MAX));
                    let why: String = why.collect();
                    if json {
                        println!(
                            "{}",
                            json!({ "what": "planted", "name": name, "caught": is_caught, "seed": seed, "why": why })
                        );
                    } else {
                        println!("{} {name:<36} {why}", if is_caught { "caught" } else { "MISSED" });
                    }
                }
            });
        }
    });
    !missed.into_inner()
}

// `git` of an agent in a worktree runs in a sandbox, which this program then sets up.
max_team_tools::command::child_before_main!();

fn main() -> ExitCode {
    let done = wanted().and_then(|wanted| Ok((calm()?, wanted)));
    let (calm, wanted) = match done {
        Ok(ready) => ready,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let mut is_well = true;
    if let Some(seed) = wanted.seed {
        match judge(seed, &calm, None) {
            Ok(cost) => println!("seed {seed} holds: {:?}, {cost:?}", Schedule::of(seed, &calm)),
            Err(why) => {
                println!("{why}");
                is_well = false;
            }
        }
    }
    if let Some(schedules) = wanted.schedules {
        let began = Instant::now();
        let (cost, failed) = many(schedules, &calm);
        let seconds = began.elapsed().as_secs_f64();
        let Cost { deaths, commits, again } = cost;
        is_well &= failed.is_none();
        let words = format!("{schedules} schedules: {deaths} deaths, {commits} commits, {again} calls asked again");
        if wanted.json {
            let holds = failed.is_none();
            let row =
                json!({ "what": "simulation", "holds": holds, "words": words, "seconds": seconds, "failed": failed });
            println!("{row}");
        } else if let Some(why) = failed {
            println!("FAILED simulation                   {why}");
            println!("play it again with its seed: scripts/crash.sh sim --seed N");
        } else {
            println!("holds  simulation                   {words} ({seconds:.1} s)");
        }
    }
    if wanted.plants {
        is_well &= plants(&calm, wanted.json);
    }
    ExitCode::from(u8::from(!is_well))
}
