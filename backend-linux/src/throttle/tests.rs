//! Readings of a copy of a machine whose files are changed between them.

use super::*;
use crate::detect::MEMBERSHIP;
use std::fs;
use tempfile::TempDir;

/// A machine with a group `a` that has a limit and a group `b` that has another.
struct Copy(TempDir);

impl Copy {
    fn new() -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        copy.write("affinity", "0-7\n");
        copy.write("proc/self/cgroup", "0::/a\n");
        copy.write(
            "proc/self/mountinfo",
            "9 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n",
        );
        copy.write("cg/a/cpu.max", "300000 100000\n");
        copy.stat("a", 100, 1_000);
        copy.write("cg/b/cpu.max", "200000 100000\n");
        copy.stat("b", 5_000, 70_000);
        copy
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn stat(&self, group: &str, nr_throttled: u64, us: u64) {
        let text = format!("nr_throttled {nr_throttled}\nthrottled_usec {us}\n");
        self.write(&format!("cg/{group}/cpu.stat"), &text);
    }

    fn reader(&self) -> ThrottleReader {
        ThrottleReader::new(Machine::copy(self.0.path()).unwrap(), at(0))
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// The counters of a reading: events, and microseconds.
fn counts(reading: &Reading) -> (Option<u64>, Option<u64>) {
    let us = |time: Duration| time.as_nanos() / 1_000;
    (
        reading.sample.nr_throttled,
        reading.sample.throttled.map(us),
    )
}

#[test]
fn readings_count_from_the_first_one() {
    let copy = Copy::new();
    let mut reader = copy.reader();
    let first = reader.read(at(10));
    assert_eq!(counts(&first), (Some(0), Some(0)));
    assert_eq!((first.sample.at, first.change), (at(10), None));
    copy.stat("a", 103, 1_500);
    assert_eq!(counts(&reader.read(at(20))), (Some(3), Some(500)));
    // A counter that fell was begun anew: what it grew by is not known, and not negative.
    copy.stat("a", 1, 10);
    assert_eq!(counts(&reader.read(at(30))), (Some(3), Some(500)));
    copy.stat("a", 2, 20);
    assert_eq!(counts(&reader.read(at(40))), (Some(4), Some(510)));
}

#[test]
fn what_is_not_counted_is_unmeasured_until_it_is() {
    let copy = Copy::new();
    copy.write("cg/a/cpu.stat", "usage_usec 3\n");
    let mut reader = copy.reader();
    assert_eq!(counts(&reader.read(at(10))), (None, None));
    copy.stat("a", 400, 4_000);
    // Not looked for again so soon.
    assert_eq!(counts(&reader.read(at(900))), (None, None));
    assert_eq!(counts(&reader.read(at(1_000))), (Some(0), Some(0)));
    copy.write("cg/a/cpu.stat", "throttled_usec 4500\n");
    assert_eq!(counts(&reader.read(at(1_010))), (None, Some(500)));
}

#[test]
fn a_changed_limit_is_noticed_within_a_second_and_told_once() {
    let copy = Copy::new();
    let mut reader = copy.reader();
    copy.write("cg/a/cpu.max", "150000 100000\n");
    assert_eq!(reader.read(at(999)).change, None);
    copy.stat("a", 101, 1_001);
    let noticed = reader.read(at(1_000));
    // The file is the same, so what it counted meanwhile counts.
    assert_eq!(counts(&noticed), (Some(1), Some(1)));
    let change = noticed.change.unwrap();
    assert_eq!(change.cause, Cause::Changed);
    assert_eq!(
        change.to_string(),
        "a limit changed: 3 cores by cgroup2 at /a (exact) -> 1.5 cores by cgroup2 at /a (exact)"
    );
    assert_eq!(reader.read(at(2_000)).change, None);
}

#[test]
fn a_moved_process_does_not_inherit_the_other_groups_past() {
    let copy = Copy::new();
    let mut reader = copy.reader();
    reader.read(at(10));
    copy.stat("a", 102, 1_200);
    assert_eq!(counts(&reader.read(at(20))), (Some(2), Some(200)));
    copy.write("proc/self/cgroup", "0::/b\n");
    let moved = reader.read(at(1_000));
    assert_eq!(counts(&moved), (Some(2), Some(200)));
    let change = moved.change.unwrap();
    assert_eq!(change.cause, Cause::Moved);
    assert_eq!(reader.detection(), &change.after);
    copy.stat("b", 5_001, 70_300);
    assert_eq!(counts(&reader.read(at(1_010))), (Some(3), Some(500)));
}

#[test]
fn what_can_no_longer_be_read_is_a_change_and_unmeasured() {
    let copy = Copy::new();
    let mut reader = copy.reader();
    reader.read(at(10));
    let membership = String::from_utf8(MEMBERSHIP.to_vec()).unwrap();
    fs::remove_file(copy.0.path().join(&membership[1..])).unwrap();
    let blind = reader.read(at(1_000));
    assert_eq!(counts(&blind), (None, None));
    let after = blind.change.unwrap().after.quota();
    assert_eq!(after.known(), None);
}
