//! A node that is gone for good.

use crate::bot::{FAR, ask};
use crate::said;
use crate::whole::Scenario;
use serde_json::Value;
use std::time::Instant;

/// Asks for readiness until the answer is as wanted, and returns it.
fn until(what: &str, ask: impl Fn() -> (u16, Value), wanted: u16) -> Value {
    let end = Instant::now() + FAR;
    loop {
        let (status, answer) = ask();
        if status == wanted {
            return answer;
        }
        assert!(Instant::now() < end, "it is not {what}: {answer}");
        std::thread::yield_now();
    }
}

/// Whoever looks at the probes sees that it is the node that is missing, and the process waits for its return; told to
/// stop it has nothing left to wait for.
#[test]
fn without_its_node_the_bot_is_not_ready_alive_and_stops_cleanly() {
    let mut scenario = Scenario::start(11, &["--health", "127.0.0.1:0"]);
    let endpoint = scenario.bot.endpoint();
    scenario.blocks(20);
    let ready = until("ready", || ask(endpoint, "/readyz"), 200);
    let head = scenario.lab.history.head().head.number;
    assert_eq!(ready["head"]["number"], head, "{ready}");

    scenario.lab.node.kill().unwrap();
    let unready = until("unready", || ask(endpoint, "/readyz"), 503);
    let reasons = unready["reasons"].as_array().unwrap();
    assert!(
        reasons.iter().any(|reason| reason["component"] == "source"),
        "{unready}"
    );
    scenario.bot.logs("to reach the node failed");
    let (alive, answer) = ask(endpoint, "/livez");
    assert_eq!(alive, 200, "{answer}");

    let Scenario { lab, bot } = scenario;
    let ended = bot.terminate();
    let found = said::check(&ended.records(), &lab.history);
    said::ended_well(&ended, &found);
}
