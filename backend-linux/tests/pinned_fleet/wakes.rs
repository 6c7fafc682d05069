//! The whole list again, over each of the other wakes that this kernel has.

use crate::binding::{WAKE, wake};
use regatta_linux::wake::offered;
use std::process::Command;

/// The name of this test, which the copies leave out.
const SELF: &str = "the_list_holds_over_every_wake";

#[test]
#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn the_list_holds_over_every_wake() {
    for offer in offered() {
        if offer.kind == wake() {
            continue;
        }
        if let Some(refusal) = offer.refusal {
            eprintln!("left out: {} is {refusal}", offer.kind);
            continue;
        }
        let mut copy = Command::new(std::env::current_exe().unwrap());
        let output = copy
            .args(["--skip", SELF])
            .env(WAKE, offer.kind.name())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {said}", offer.kind);
        // It did run something.
        assert!(
            said.contains(" passed;") && !said.contains(" 0 passed;"),
            "{said}"
        );
    }
}
