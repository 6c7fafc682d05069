//! Addresses of nodes.

use std::path::Path;

use proptest::prelude::*;
use regatta_chain::endpoint::{Endpoint, EndpointError};

fn read(text: &str) -> Result<Endpoint, EndpointError> {
    text.parse()
}

#[test]
fn what_is_shown_of_an_endpoint_has_no_secret() {
    let shown = [
        ("ws://localhost:8546", "ws://localhost:8546"),
        ("WS://127.0.0.1", "ws://127.0.0.1:80"),
        ("wss://[::1]:8546/", "wss://[::1]:8546"),
        (
            "wss://mainnet.example.com/ws/v3/KEY",
            "wss://mainnet.example.com:443/…",
        ),
        (
            "wss://user:KEY@node.example.com?auth=KEY#KEY",
            "wss://node.example.com:443/…",
        ),
        (
            "wss://KEY%40@a:p@node.example.com",
            "wss://node.example.com:443",
        ),
        ("/run/geth.ipc", "ipc:/run/geth.ipc"),
        ("./geth.ipc", "ipc:./geth.ipc"),
        ("ipc:geth\n.ipc", r"ipc:geth\n.ipc"),
    ];
    for (text, wanted) in shown {
        let endpoint = read(text).unwrap();
        assert_eq!(endpoint.to_string(), wanted);
        assert!(!format!("{endpoint:?}").contains("KEY"));
    }
    assert_eq!(read("ipc:/a/b").unwrap(), Endpoint::ipc(Path::new("/a/b")));
    let clear = ["ws://a", "wss://a", "/a"].map(|text| read(text).unwrap().is_clear());
    assert_eq!(clear, [true, false, false]);
}

#[test]
fn what_is_no_endpoint_is_refused_with_what_would_be_right() {
    use EndpointError as E;
    let refused = [
        ("", E::Empty, "ws://HOST:PORT"),
        (
            "http://localhost:8545",
            E::Scheme {
                scheme: "http".into(),
            },
            "give ws:// or wss://",
        ),
        ("localhost:8546", E::Neither, "ws://HOST:PORT"),
        ("geth.ipc", E::Neither, "begins with ./"),
        ("ipc:", E::NoPath, "ipc:PATH"),
        ("ws://", E::NoHost { scheme: "ws" }, "ws://HOST:PORT"),
        (
            "wss://user:KEY@/KEY",
            E::NoHost { scheme: "wss" },
            "wss://HOST:PORT",
        ),
        ("ws://a b", E::Host { character: ' ' }, "an IPv4 address"),
        ("ws://[::1", E::Host { character: '[' }, "in brackets"),
        ("ws://a:0", E::Port { port: "0".into() }, "from 1 to 65535"),
        (
            "ws://a:65536",
            E::Port {
                port: "65536".into(),
            },
            "from 1 to 65535",
        ),
        (
            "ws://a:+1",
            E::Port { port: "+1".into() },
            "from 1 to 65535",
        ),
        ("ws://::1", E::Host { character: ':' }, "in brackets"),
        ("ws://[::1]x", E::Host { character: 'x' }, "in brackets"),
        (
            "ws://a/b c",
            E::Target { character: ' ' },
            "percent-encoded",
        ),
        (
            "ws://a/\r\nKEY: x",
            E::Target { character: '\r' },
            "percent-encoded",
        ),
        ("ws://us%er:KEY@a", E::Credentials, "%25"),
    ];
    for (text, wanted, right) in refused {
        let error = read(text).unwrap_err();
        assert_eq!(error, wanted, "{text}");
        let shown = error.to_string();
        assert!(
            shown.contains(right) && !shown.contains("KEY") && !shown.contains('\n'),
            "{shown}"
        );
    }
}

proptest! {
    /// Any text is an endpoint or an error, and neither shows what stands before the host or after it.
    #[test]
    fn any_text_is_an_endpoint_or_an_error_without_its_secrets(
        tls in any::<bool>(), user in "[a-z%@:]{0,6}", host in "[a-z.\\[\\]:0-9]{0,12}", tail in "[/?#a-z \\n]{0,6}",
    ) {
        let text = format!("ws{}://S3CR{user}@{host}/S3CR{tail}", if tls { "s" } else { "" });
        let shown = match read(&text) {
            Ok(endpoint) => format!("{endpoint} {endpoint:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!shown.contains("S3CR"), "{}", shown);
    }
}
