//! Records are written whole and flushed.

use super::*;

/// Keeps the writes apart.
#[derive(Default)]
struct Writes(Vec<Vec<u8>>);

impl Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn summary() -> Record {
    Record::Summary(SummaryRecord {
        blocks: 1,
        touched: 2,
        solved: 1,
        suppressed: 1,
        failed: 0,
        published: 1,
        retracted: 0,
        unproved: 0,
        best_profit: Some("7".to_owned()),
        best_block: Some(1),
        ledger: Vec::new(),
        abandoned: 0,
        balanced: true,
        best_shown: None,
        timing: SummaryTiming {
            elapsed_ms: 0.5,
            missed: 0,
            cycle_us: PercentileRecord::default(),
            bins: Vec::new(),
            suppressed_intake: 0,
            handed_back: 0,
            ticks: 0,
            ledger: Vec::new(),
            verifier: None,
            settlement: None,
        },
    })
}

#[test]
fn a_record_is_one_write_that_ends_a_line() {
    for format in [Format::Text, Format::Json] {
        let mut writes = Writes::default();
        let mut reporter = Reporter::new(&mut writes, format);
        reporter.emit(&summary()).unwrap();
        reporter.emit(&summary()).unwrap();
        let [first, second] = &writes.0[..] else {
            panic!("{} writes of 2 records as {format:?}", writes.0.len());
        };
        assert_eq!(first, second, "a record has nothing of the one before");
        let text = std::str::from_utf8(first).unwrap();
        assert!(text.ends_with('\n'), "{text:?}");
        assert!(format == Format::Text || text.lines().count() == 1);
    }
}
