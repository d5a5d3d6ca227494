//! Which calls have an unknown outcome after a crash.

use super::*;

#[test]
fn an_interrupted_command_stays_unknown_until_it_has_run_well() {
    for (then, want) in [("shell", &[][..]), ("read", &["c"][..])] {
        let mut world = World::new(vec![uses(&[("shell", json!({}))]), uses(&[(then, json!({}))])]);
        assert!(world.begin().is_ok());
        while !matches!(world.turn.pending().as_slice(), [TurnEffect::RunTool { .. }]) {
            let effect = world.turn.pending().remove(0);
            assert!(world.perform(effect).is_ok());
        }
        world.refold();
        assert_eq!(world.turn.unknown_outcomes(), [""; 0]);
        assert!(world.input(TurnInput::Recovered).is_ok());
        assert_eq!(world.turn.unknown_outcomes(), ["c"]);
        let is_asked_last = |world: &World| world.model_calls.len() == 2 && world.turn.calling().is_some();
        while !is_asked_last(&world) {
            let effect = world.turn.pending().remove(0);
            assert!(world.perform(effect).is_ok());
        }
        assert_eq!(world.turn.unknown_outcomes(), want, "{then}");
    }
}
