//! What a plan will cost, from what the same members' tasks cost before.

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::json;

use crate::plans::{news, task};
use crate::program::Program;

const PLAN: &str = "goal: look\ntasks:\n  - {id: a, title: a, agent: ada, do: Look., retry: 0}\n";

#[test]
fn a_forecast_learns_from_earlier_plans() {
    // Nine cents each: 20,000 tokens in for 3 dollars a million, 2,000 out for 15.
    let server = ModelServer::start(
        Script::new()
            .on(task("a"), Reply::text("Nothing.").usage(20_000, 2_000, 0, 0))
            .on(news("is over:"), Reply::text("Done.")),
    );
    let program = Program::team(&server).file("one.yaml", PLAN);
    let look = |words: &[&str]| {
        let ran = program.run(&[&["run", "one.yaml", "--dry-run"], words].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out
    };
    let first = look(&[]);
    assert!(first.contains("expected: $0.15–0.45, 1 min, 8 model calls\n"), "a guess: {first}");
    let bounded = look(&["--max-budget-usd", "0.25"]);
    assert!(
        bounded.contains("expected: $0.15–0.25, 1 min, 8 model calls; the budget stops it at $0.25\n"),
        "{bounded}"
    );
    for _ in 0..3 {
        let ran = program.run(&["run", "one.yaml", "--yes"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let known = look(&[]);
    assert!(known.contains("expected: $0.09, ") && known.contains(", 1 model call; from 3 earlier tasks\n"), "{known}");
    let chinese = look(&["--lang", "zh"]);
    assert!(chinese.contains("预计 $0.09") && chinese.contains("；依据此前 3 个任务"), "{chinese}");

    // The same figures for programs.
    let ran = program.run(&["run", "one.yaml"]);
    assert!(ran.code == 5 && ran.out.contains("from 3 earlier tasks"), "{ran:?}");
    let asked = program.run(&["inbox", "--json"]).json();
    let forecast = &asked[0]["forecast"];
    assert_eq!([&forecast["likely_nano"], &forecast["high_nano"]], [&json!(90_000_000), &json!(90_000_000)], "{asked}");
    assert_eq!(asked[0]["tasks"][0]["description"], "Look.");
    let shown = program.run(&["plans", "show", "--json"]).json();
    assert_eq!(shown["forecast"], *forecast);
}
