//! The two feeds: one after the other, and as they come.

use super::*;
use crate::market::{ApplyError, PoolId};
use crate::source::{Block, BlockHash};

/// What a scripted source does next.
enum Step {
    Event,
    Error,
    Panic,
}

struct Script(std::vec::IntoIter<Step>, u64);

impl BlockSource for Script {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        match self.0.next() {
            None => Ok(None),
            Some(Step::Error) => Err(error()),
            Some(Step::Panic) => panic!("as the script says"),
            Some(Step::Event) => {
                self.1 += 1;
                Ok(Some(block(self.1)))
            }
        }
    }
}

fn block(number: u64) -> Event {
    Event::Block(Block {
        number,
        hash: BlockHash::new([1; 32]),
        parent: BlockHash::new([0; 32]),
        timestamp: 0,
        base_fee: None,
        updates: Vec::new(),
    })
}

fn error() -> SourceError {
    SourceError::Update {
        number: 4,
        problem: ApplyError::UnknownPool {
            pool: PoolId::new(9),
            pools: 1,
        },
    }
}

fn live(steps: Vec<Step>) -> (Feed, Census, LiveSource) {
    let census = Census::new();
    let source = Box::new(Script(steps.into_iter(), 0));
    let (live, source) = LiveFeed::start(source, Duration::ZERO, Arc::default(), &census).unwrap();
    (Feed::Live(live), census, source)
}

/// All events, and how the stream ended.
fn all(feed: &mut Feed) -> (Vec<Event>, Result<(), FeedError>) {
    let mut events = Vec::new();
    loop {
        let before = events.len();
        match feed.next_batch(&mut events, &crate::pipeline::Unwatched) {
            Ok(()) if events.len() > before => {}
            end => return (events, end),
        }
    }
}

#[test]
fn a_live_feed_delivers_every_event_in_order_and_then_ends() {
    let (mut feed, census, source) = live((0..3000).map(|_| Step::Event).collect());
    let (events, end) = all(&mut feed);
    assert!(events.into_iter().eq((1..=3000).map(block)));
    assert!(end.is_ok());
    let again = all(&mut feed);
    assert!(again.0.is_empty() && again.1.is_ok(), "an end is an end");
    drop(source);
    assert!(census.rows().iter().all(|row| !row.running));
}

#[test]
fn what_came_before_an_error_is_delivered_before_the_error() {
    let (mut feed, _census, _source) =
        live(vec![Step::Event, Step::Event, Step::Error, Step::Event]);
    let (events, end) = all(&mut feed);
    assert_eq!(events, [block(1), block(2)]);
    assert!(matches!(end, Err(FeedError::Source(found)) if found == error()));
}

#[test]
fn a_source_that_panics_is_no_end_of_the_stream() {
    let (mut feed, _census, _source) = live(vec![Step::Event, Step::Panic]);
    let (events, end) = all(&mut feed);
    assert_eq!(events, [block(1)]);
    assert!(matches!(end, Err(FeedError::Lost)));
}

/// Never ends, and tells each time it is asked.
struct Endless(mpsc::Sender<()>);

impl BlockSource for Endless {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        self.0.send(()).unwrap();
        Ok(Some(block(1)))
    }
}

#[test]
fn a_feed_that_nobody_takes_from_makes_its_source_wait_and_can_be_dropped() {
    let census = Census::new();
    let (asked, asks) = mpsc::channel();
    let (live, source) = LiveFeed::start(
        Box::new(Endless(asked)),
        Duration::ZERO,
        Arc::default(),
        &census,
    )
    .unwrap();
    // Those that wait, and the one that has no room.
    for _ in 0..=PENDING {
        asks.recv().unwrap();
    }
    drop((live, source));
    assert_eq!(
        asks.iter().count(),
        0,
        "asked for more than there is room for"
    );
    assert!(census.rows().iter().all(|row| !row.running));
}

#[test]
fn a_batch_is_bounded_however_fast_its_source_is() {
    let census = Census::new();
    let (asked, _asks) = mpsc::channel();
    let (live, _source) = LiveFeed::start(
        Box::new(Endless(asked)),
        Duration::ZERO,
        Arc::default(),
        &census,
    )
    .unwrap();
    let (mut feed, mut events) = (Feed::Live(live), Vec::new());
    feed.next_batch(&mut events, &crate::pipeline::Unwatched)
        .unwrap();
    assert!(
        (1..=PENDING + 1).contains(&events.len()),
        "{}",
        events.len()
    );
}

#[test]
fn a_stopped_feed_does_not_wait_for_the_next_time() {
    let census = Census::new();
    let steps = vec![Step::Event, Step::Event];
    let source = Box::new(Script(steps.into_iter(), 0));
    let (live, source) =
        LiveFeed::start(source, Duration::from_hours(1), Arc::default(), &census).unwrap();
    let mut events = Vec::new();
    let mut feed = Feed::Live(live);
    feed.next_batch(&mut events, &crate::pipeline::Unwatched)
        .unwrap();
    assert_eq!(events, [block(1)]);
    drop((feed, source));
    assert!(census.rows().iter().all(|row| !row.running));
}

/// Whoever waits for the next event is woken by a closed feed, and finds its end.
#[test]
fn a_closed_feed_ends_for_who_waits() {
    let census = Census::new();
    let steps = vec![Step::Event, Step::Event];
    let source = Box::new(Script(steps.into_iter(), 0));
    let (live, mut source) =
        LiveFeed::start(source, Duration::from_hours(1), Arc::default(), &census).unwrap();
    let closer = live.closer();
    let (tell, told) = mpsc::channel();
    let spec = ThreadSpec::one("test", "waits");
    let waits = census.spawn(spec, move || {
        let mut feed = Feed::Live(live);
        let mut events = Vec::new();
        feed.next_batch(&mut events, &crate::pipeline::Unwatched)
            .unwrap();
        tell.send(events.len()).unwrap();
        feed.next_batch(&mut events, &crate::pipeline::Unwatched)
            .unwrap();
        events.len()
    });
    assert_eq!(told.recv().unwrap(), 1);
    closer.close();
    assert_eq!(waits.unwrap().join().unwrap(), 1);
    assert!(source.stop(Instant::now() + LEAVE));
    assert!(!source.has_thread());
}

/// A source that must not wait is told that there is no room, and told when there is.
#[test]
fn an_offer_without_room_is_given_back_and_room_is_told_once() {
    let (live, feeder) = LiveFeed::open();
    let (tell, told) = mpsc::channel();
    feeder.on_room(move || tell.send(()).unwrap());
    for number in 1..=PENDING as u64 {
        feeder.offer(block(number)).unwrap();
    }
    for _ in 0..2 {
        let declined = feeder.offer(block(7)).unwrap_err();
        assert_eq!(declined, Untaken::Full(block(7)));
    }
    let (mut feed, mut events) = (Feed::Live(live), Vec::new());
    feed.next_batch(&mut events, &crate::pipeline::Unwatched)
        .unwrap();
    assert_eq!(events.len(), PENDING);
    assert_eq!(
        told.try_iter().count(),
        1,
        "told once for two that were declined"
    );
    feeder.offer(block(7)).unwrap();
    feeder.end(Ok(()));
    let (events, end) = all(&mut feed);
    assert!(events == [block(7)] && end.is_ok());
    assert_eq!(told.try_iter().count(), 0);
}

/// Who was declined hears of a closed feed too, and one that goes without a word has not ended.
#[test]
fn a_closed_feed_is_told_to_who_offers_and_a_lost_one_to_who_takes() {
    let (live, feeder) = LiveFeed::open();
    let (tell, told) = mpsc::channel();
    feeder.on_room(move || tell.send(()).unwrap());
    while feeder.offer(block(1)).is_ok() {}
    drop(live);
    assert_eq!(told.try_iter().count(), 1);
    assert_eq!(feeder.offer(block(2)), Err(Untaken::Closed(block(2))));

    let (live, feeder) = LiveFeed::open();
    feeder.offer(block(1)).unwrap();
    drop(feeder);
    let (events, end) = all(&mut Feed::Live(live));
    assert_eq!(events, [block(1)]);
    assert!(matches!(end, Err(FeedError::Lost)));
}

#[test]
fn a_wake_ends_one_wait_before_or_while_it_lasts_and_comes_after_events_that_are_there() {
    let (mut feed, census, source) = live(Vec::new());
    let waker = feed.waker().unwrap();
    let Feed::Live(inner) = &feed else {
        panic!("it is live");
    };
    // A queue of our own, whose source is silent and not gone.
    let queue = Arc::new(Queue::new(4));
    drop(source);
    let mut silent = Feed::Live(LiveFeed {
        queue: Arc::clone(&queue),
        over: false,
    });
    drop(waker);
    assert!(!Arc::ptr_eq(&inner.queue, &queue));
    let waker = silent.waker().unwrap();
    let mut events = Vec::new();
    let next = |feed: &mut Feed, events: &mut Vec<Event>| {
        feed.next(events, &crate::pipeline::Unwatched, true)
            .unwrap()
    };
    // Twice is once.
    waker.wake();
    waker.wake();
    assert_eq!(next(&mut silent, &mut events), FeedNext::Woken);
    let spec = ThreadSpec {
        kernel_name: "rg-waker".to_owned(),
        name: "regatta/bot/waker".to_owned(),
        owner: "test".to_owned(),
        role: "waker".to_owned(),
        sizing: "one".to_owned(),
        binding: LaneBinding::Pinned,
    };
    let elsewhere = census.spawn(spec, move || waker.wake()).unwrap();
    assert_eq!(next(&mut silent, &mut events), FeedNext::Woken);
    elsewhere.join().unwrap();
    silent.waker().unwrap().wake();
    assert!(queue.push(Delivery::Event(block(1))).is_ok());
    assert_eq!(next(&mut silent, &mut events), FeedNext::Events);
    assert_eq!(events, [block(1)]);
    assert_eq!(next(&mut feed, &mut events), FeedNext::End);
}
