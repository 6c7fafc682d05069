//! What operators write, as any text: policies, overrides, profiles and quotas are taken whole or refused with
//! the key, and what is taken is what was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_core::budget::{MilliCpu, Origin, Overrides};
use regatta_core::plan::Profile;
use regatta_core::posture::{PosturePolicy, PosturePolicyPatch};
use regatta_core::role::FLEET_ROLES;

fuzz_target!(|text: &str| {
    let mut patch = PosturePolicyPatch::default();
    let mut overrides = Overrides::none();
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let before = patch;
        match patch.set(key, value) {
            Ok(()) => assert!(patch.set(key, value).is_err(), "{key} was set twice"),
            Err(error) => {
                assert_eq!(patch, before, "{error}, and something was set");
                assert!(!error.to_string().is_empty());
            }
        }
        let unchanged = overrides.clone();
        if let Err(error) = overrides.set(&FLEET_ROLES, key, value, Origin::Environment) {
            assert_eq!(overrides, unchanged, "{error}, and something was set");
            assert!(!error.to_string().is_empty());
        }
        if let Ok(milli) = MilliCpu::parse(line) {
            assert_eq!(line.trim_start_matches('0'), milli.milli().to_string());
        }
        if let Ok(profile) = Profile::parse(line) {
            assert_eq!(profile.name(), line);
        }
    }
    if let Ok((policy, _)) = PosturePolicy::DEFAULT.patched(&patch) {
        assert!(policy.whole().validate().is_ok());
        assert!(
            policy
                .patched(&patch)
                .is_ok_and(|(again, changes)| again == policy && changes.is_empty())
        );
    }
});
