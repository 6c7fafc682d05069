//! Pool files, as any bytes: no panic, an error names its place, and a market holds what its rows say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_bot::market::csv::{Loader, PoolIsToken};

fuzz_target!(|bytes: &[u8]| {
    for pool_is_token in [PoolIsToken::Keep, PoolIsToken::Skip] {
        let mut loader = Loader::new(pool_is_token);
        // Two files, so that rows of one can clash with rows of the other.
        let mut read = Ok(());
        for part in bytes.splitn(2, |byte| *byte == 0) {
            read = read.and_then(|()| loader.text("a.csv", "a", part));
        }
        if let Err(error) = read {
            assert!(!error.to_string().is_empty());
            continue;
        }
        let Ok(loaded) = loader.finish() else {
            continue;
        };
        let market = &loaded.market;
        for id in market.pool_ids() {
            let pool = market.pool(id);
            assert!(pool.reserve0 > 0 && pool.reserve1 > 0, "{pool:?}");
        }
        assert!(market.pools().len() as u64 + loaded.skipped.total() <= bytes.len() as u64);
    }
});
