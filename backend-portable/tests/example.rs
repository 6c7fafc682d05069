//! The example says what it should.

#[path = "../examples/word_statistics.rs"]
#[expect(dead_code, reason = "its `main` prints what is looked at here")]
mod word_statistics;

#[test]
fn the_words_of_both_texts_are_counted_once() {
    let text = word_statistics::report(["a b\nb c", "c d\n\na"]).unwrap();
    let (count, status) = text.split_once('\n').unwrap();
    // The empty line is one empty word.
    assert_eq!(count, "5 distinct words");
    assert!(status.contains("5 submitted = 0 in flight + 0 queued + 0 held + 5 resolved"));
}
