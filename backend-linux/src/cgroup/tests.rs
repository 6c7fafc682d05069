//! The parsers against plain references, and against bytes that nobody meant.

use super::view::unescape;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use regatta_core::budget::MilliCpu;

#[test]
fn a_limit_is_the_ratio_rounded_down() {
    for quota in 1..=400u64 {
        for period in 1..=400u64 {
            let milli = u32::try_from(quota * 1000 / period).unwrap();
            let at = Limit::At(MilliCpu::new(milli));
            let (q, p) = (quota.to_string(), period.to_string());
            assert_eq!(Limit::from_max(format!("{q} {p}\n").as_bytes()), at);
            assert_eq!(Limit::from_cfs(q.as_bytes(), Some(p.as_bytes())), at);
        }
    }
}

#[test]
fn only_the_kernels_two_words_mean_no_limit() {
    for max in ["max", "max 100000", " max\t50000 \n"] {
        assert_eq!(Limit::from_max(max.as_bytes()), Limit::Unlimited);
    }
    assert_eq!(Limit::from_cfs(b"-1\n", None), Limit::Unlimited);
    for bad in [
        "", "MAX", "max 0", "max x", "maximum", "-1", "+1", "1.5", "0x10", "max max",
    ] {
        assert_eq!(Limit::from_max(bad.as_bytes()), Limit::Malformed, "{bad}");
    }
    for bad in ["", "max", "-2", "--1", "- 1", "-1 -1", "0"] {
        let limit = Limit::from_cfs(bad.as_bytes(), Some(b"100000"));
        assert_eq!(limit, Limit::Malformed, "{bad}");
    }
}

#[test]
fn a_controller_is_in_the_first_hierarchy_if_that_lists_it() {
    let text = b"5:cpuacct,cpu:/one\n4:cpuset:/two\n2:name=cpu:/three\n0::/four\n";
    let group = |text, controller| {
        let group = Membership::parse(text).group(controller);
        group.map(|group| (group.hierarchy, group.path))
    };
    let v1 = |path: &'static [u8]| Some((Hierarchy::V1, path));
    assert_eq!(group(text, Controller::Cpu), v1(b"/one"));
    assert_eq!(group(text, Controller::CpuSet), v1(b"/two"));
    let unified: Option<(_, &[u8])> = Some((Hierarchy::V2, b"/four"));
    assert_eq!(
        group(b"2:name=cpu:/three\n0::/four", Controller::Cpu),
        unified
    );
    assert_eq!(group(b"2:name=cpu:/three\n", Controller::Cpu), None);
}

#[test]
fn views_show_every_level_between_the_group_and_the_mounts_root() {
    let view = |root: &str, own: &str| View::new(b"/m", root.as_bytes(), own.as_bytes());
    let levels = |view: &View| -> Vec<(String, String)> {
        (0..view.levels())
            .map(|level| (show(view.path(level)), show(&view.file(level, "f"))))
            .collect()
    };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |(path, file): &(&str, &str)| ((*path).to_owned(), (*file).to_owned());
        pairs.iter().map(owned).collect()
    };
    let whole = view("/", "/a/b").unwrap();
    assert_eq!(
        levels(&whole),
        pairs(&[("/a/b", "/m/a/b/f"), ("/a", "/m/a/f"), ("/", "/m/f")])
    );
    let below = view("/a", "/a/b").unwrap();
    assert_eq!(levels(&below), pairs(&[("/a/b", "/m/b/f"), ("/a", "/m/f")]));
    assert_eq!(
        levels(&view("/a/b", "/a/b").unwrap()),
        pairs(&[("/a/b", "/m/f")])
    );
    assert_eq!(levels(&view("/", "/").unwrap()), pairs(&[("/", "/m/f")]));
    for (root, own) in [("/a", "/b"), ("/a", "/"), ("/a", "/ab"), ("/a/b", "/a")] {
        assert_eq!(view(root, own), None, "{root} {own}");
    }
    for (root, own) in [
        ("/", "/../x"),
        ("/..", "/"),
        ("/../..", "/a"),
        ("/", "/a/../b"),
    ] {
        let outside = view(root, own).unwrap();
        assert!(outside.is_outside());
        assert_eq!(levels(&outside), pairs(&[(root, "/m/f")]), "{root} {own}");
    }
    assert_eq!(view("/../x", "/"), None);
    assert!(!view("/../x", "/../x/y").unwrap().is_outside());
    // A hierarchy that is mounted at the root of the file system.
    let top = View::new(b"/", b"/", b"/a").unwrap();
    assert_eq!(levels(&top), pairs(&[("/a", "/a/f"), ("/", "/f")]));
}

#[test]
fn octal_escapes_are_undone_and_nothing_else_is() {
    for (text, plain) in [
        (r"a\040b", "a b"),
        (r"\134\012\011", "\\\n\t"),
        (r"\04", r"\04"),
        (r"\999", r"\999"),
        (r"\400", r"\400"),
        (r"\", r"\"),
        (r"\\040", r"\ "),
    ] {
        assert_eq!(
            unescape(text.as_bytes()).as_ref(),
            plain.as_bytes(),
            "{text}"
        );
    }
}

#[test]
fn cpu_lists_take_numbers_and_ranges_and_nothing_else() {
    let count = |text: &str| CpuSet::parse(text.as_bytes()).map(|set| set.count());
    for (text, cpus) in [
        ("", 0),
        ("0", 1),
        ("0-3,8\n", 5),
        ("3,1-3", 3),
        ("1048575", 1),
    ] {
        assert_eq!(count(text), Ok(cpus), "{text}");
    }
    for bad in [
        "-",
        "1-",
        "-1",
        "3-1",
        "1,,2",
        "a",
        "0-7:1/2",
        "1048576",
        "0-99999999999999999999",
    ] {
        let error = count(bad).unwrap_err().to_string();
        assert!(error.contains("numbers below 1048576"), "{bad}: {error}");
    }
}

#[test]
fn counters_are_of_their_hierarchys_unit_and_absent_is_not_zero() {
    let v2 = Counters::parse(
        Hierarchy::V2,
        b"nr_throttled 0\nthrottled_usec 2\nthrottled_time 9\n",
    );
    assert_eq!((v2.nr_throttled, v2.throttled_ns), (Some(0), Some(2000)));
    let v1 = Counters::parse(Hierarchy::V1, b"throttled_usec 2\nthrottled_time 9\n");
    assert_eq!((v1.nr_throttled, v1.throttled_ns), (None, Some(9)));
    assert!(!Counters::parse(Hierarchy::V1, b"throttled_usec 2\nnr_periods 3\n").measured());
}

#[test]
fn what_is_shown_is_printable() {
    assert_eq!(show("/é/x".as_bytes()), "/é/x");
    assert_eq!(show(b"/\xff\n\x1b"), r"/\xff\n\u{1b}");
}

/// Lines that look like the kernel's, for a better chance to reach what is behind the first check.
fn kernel_like() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(b"cgroup2".to_vec()),
        Just(b"cgroup".to_vec()),
        Just(b"-".to_vec()),
        Just(b"/".to_vec()),
        Just(b"/..".to_vec()),
        Just(b"/a\\040b".to_vec()),
        Just(b"0::/a".to_vec()),
        Just(b"3:cpu:/../b".to_vec()),
        Just(b"rw,cpu,cpuset".to_vec()),
        Just(b"max".to_vec()),
        Just(b"7".to_vec()),
        Just(b"18446744073709551616".to_vec()),
        vec(any::<u8>(), 0..6),
    ];
    let separator = prop_oneof![Just(b' '), Just(b'\n'), Just(b':'), Just(b'/'), Just(b',')];
    vec((word, separator), 0..40).prop_map(|words| {
        words
            .into_iter()
            .flat_map(|(mut word, separator)| {
                word.push(separator);
                word
            })
            .collect()
    })
}

fn some_text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..200), kernel_like()]
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic_or_say_unlimited(text in some_text(), other in some_text()) {
        let membership = Membership::parse(&text);
        let mounts = Mounts::parse(&other);
        for controller in [Controller::Cpu, Controller::CpuSet] {
            if let Some(group) = membership.group(controller) {
                for view in mounts.views(controller, group) {
                    for level in 0..view.levels() {
                        prop_assert!(!view.file(level, "f").windows(3).any(|part| part == b"/.."));
                        let _ = show(view.path(level));
                    }
                }
            }
        }
        let says_max = text.windows(3).any(|part| part == b"max");
        prop_assert!(says_max || Limit::from_max(&text) != Limit::Unlimited);
        let says_none = text.windows(2).any(|part| part == b"-1");
        prop_assert!(says_none || Limit::from_cfs(&text, Some(&other)) != Limit::Unlimited);
        let _ = Counters::parse(Hierarchy::V1, &text);
        let _ = Counters::parse(Hierarchy::V2, &text);
        let _ = CpuSet::parse(&text);
        let _ = unescape(&text);
    }

    #[test]
    fn a_set_of_cpus_is_what_its_list_says(cpus in proptest::collection::btree_set(0usize..3000, 0..40)) {
        let list = cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let set = CpuSet::parse(list.as_bytes()).unwrap();
        prop_assert!(set.iter().eq(cpus.iter().copied()));
        prop_assert_eq!(set.count() as usize, cpus.len());
        prop_assert_eq!(&CpuSet::parse(set.to_string().as_bytes()).unwrap(), &set);
        let even = CpuSet::from_words(&[0x5555_5555_5555_5555; 47]);
        prop_assert!(set.and(&even).iter().eq(cpus.into_iter().filter(|cpu| cpu % 2 == 0)));
    }
}
