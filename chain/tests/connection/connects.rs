//! Connecting, and what stands in the way.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use regatta_chain::endpoint::Endpoint;
use regatta_chain::rpc::{self, Limits};
use regatta_chain::transport::{ConnectError, Roots};
use regatta_fake_node::{Door, FakeNode, Script};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{join, patient, run};

async fn refusal(endpoint: &str, limits: &Limits, roots: &Roots) -> ConnectError {
    match rpc::connect_with(&endpoint.parse().unwrap(), limits, roots).await {
        Ok(_) => panic!("connected"),
        Err(error) => error,
    }
}

#[test]
fn where_nothing_listens_the_refusal_says_so_and_after_it_opens_it_connects() {
    for script in super::sockets() {
        run(async {
            let node = FakeNode::start(script().door(Door::Shut)).unwrap();
            let error = refusal(node.endpoint(), &patient(), &Roots::System).await;
            let ConnectError::Unreachable { source, .. } = &error else {
                panic!("{error}")
            };
            assert!(
                matches!(
                    source.kind(),
                    ErrorKind::ConnectionRefused | ErrorKind::NotFound
                ),
                "{error}"
            );
            node.door(Door::Open);
            node.until("the node to listen", |seen| seen.listening)
                .await
                .unwrap();
            let (client, _notifications, _session) = join(&node, &patient()).await;
            assert_eq!(
                client
                    .call::<String>("eth_chainId", json!([]))
                    .await
                    .unwrap(),
                "0x1"
            );
        });
    }
}

#[test]
fn what_does_not_answer_the_handshake_is_given_up_at_the_deadline() {
    run(async {
        let node = FakeNode::start(Script::new().door(Door::Mute)).unwrap();
        let mut limits = patient();
        limits.transport.connect = Duration::from_millis(100);
        let error = refusal(node.endpoint(), &limits, &Roots::System).await;
        assert!(
            matches!(error, ConnectError::Deadline { after, .. } if after == limits.transport.connect),
            "{error}"
        );
        assert_eq!((node.seen().knocked, node.seen().accepted), (1, 0));
    });
}

#[test]
fn what_answers_the_handshake_otherwise_is_a_typed_refusal() {
    run(async {
        let node = FakeNode::start(Script::new().door(Door::Status(401))).unwrap();
        let error = refusal(node.endpoint(), &patient(), &Roots::System).await;
        assert!(
            matches!(error, ConnectError::Status { status: 401, .. }),
            "{error}"
        );
        node.door(Door::Garbage);
        let error = refusal(node.endpoint(), &patient(), &Roots::System).await;
        assert!(matches!(error, ConnectError::Handshake { .. }), "{error}");
    });
}

/// Takes one handshake, and returns it.
async fn overhear(endpoint: impl FnOnce(u16) -> String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint: Endpoint = endpoint(listener.local_addr().unwrap().port())
        .parse()
        .unwrap();
    let connecting = tokio::spawn(async move { rpc::connect(&endpoint, &patient()).await.is_ok() });
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n\r\n") {
        assert!(stream.read_buf(&mut heard).await.unwrap() > 0);
    }
    stream
        .write_all(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
        .await
        .unwrap();
    assert!(!connecting.await.unwrap());
    String::from_utf8(heard).unwrap()
}

#[test]
fn the_handshake_carries_the_path_the_query_and_the_credentials() {
    run(async {
        let heard =
            overhear(|port| format!("ws://Aladdin:open%20sesame@127.0.0.1:{port}/v3/key?a=b#c"))
                .await;
        assert!(heard.starts_with("GET /v3/key?a=b HTTP/1.1\r\n"), "{heard}");
        // The example of RFC 7617, section 2.
        let lower = heard.to_ascii_lowercase();
        assert!(
            lower.contains("authorization: ")
                && heard.contains("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"),
            "{heard}"
        );
        let heard = overhear(|port| format!("ws://127.0.0.1:{port}")).await;
        assert!(
            heard.starts_with("GET / HTTP/1.1\r\n")
                && !heard.to_ascii_lowercase().contains("authorization")
        );
    });
}

/// A root and a certificate of it for `localhost`, made for this test, which nothing else trusts.
fn certificates() -> (CertificateDer<'static>, Arc<ServerConfig>) {
    let certificate = |pem: &[u8]| CertificateDer::from_pem_slice(pem).unwrap();
    let chain = vec![certificate(include_bytes!("certs/localhost.pem"))];
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("certs/localhost.key.pem")).unwrap();
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
    (
        certificate(include_bytes!("certs/root.pem")),
        Arc::new(config),
    )
}

#[test]
fn an_encrypted_socket_connects_to_whom_a_root_vouches_for_and_to_nobody_else() {
    run(async {
        let (root, config) = certificates();
        let node = FakeNode::start(Script::new().tls(config)).unwrap();
        let roots = Roots::Only(vec![root]);
        let endpoint: Endpoint = node.endpoint().parse().unwrap();
        let (client, _notifications, session) = rpc::connect_with(&endpoint, &patient(), &roots)
            .await
            .unwrap();
        let _session = tokio::spawn(session);
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );

        // The right root, and another name than the certificate's.
        let numeric = node.endpoint().replace("localhost", "127.0.0.1");
        let error = refusal(&numeric, &patient(), &roots).await;
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        // A root that vouches for others.
        let stranger =
            CertificateDer::from_pem_slice(include_bytes!("certs/localhost.pem")).unwrap();
        let error = refusal(node.endpoint(), &patient(), &Roots::Only(vec![stranger])).await;
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        // No root at all.
        let error = refusal(node.endpoint(), &patient(), &Roots::Only(Vec::new())).await;
        assert!(matches!(error, ConnectError::NoRoots), "{error}");
        // The system does not know the test's root, if it knows any.
        let error = refusal(node.endpoint(), &patient(), &Roots::System).await;
        assert!(
            matches!(error, ConnectError::Tls { .. } | ConnectError::NoRoots),
            "{error}"
        );
    });
}

#[test]
fn an_encrypted_socket_to_one_that_speaks_in_the_clear_is_a_typed_refusal() {
    run(async {
        let node = FakeNode::start(Script::new().door(Door::Garbage)).unwrap();
        let endpoint = node.endpoint().replace("ws:", "wss:");
        let (root, _) = certificates();
        let error = refusal(&endpoint, &patient(), &Roots::Only(vec![root])).await;
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
    });
}

#[test]
fn a_connection_is_counted_by_the_node_and_its_calls_are() {
    run(async {
        let node = FakeNode::start(Script::new()).unwrap();
        let (first, _notifications, _session) = join(&node, &patient()).await;
        let (second, _others, _theirs) = join(&node, &patient()).await;
        for client in [&first, &first, &second] {
            client
                .call::<Value>("eth_chainId", json!([]))
                .await
                .unwrap();
        }
        let seen = node.seen();
        assert_eq!(
            (seen.accepted, seen.open, seen.calls("eth_chainId")),
            (2, 2, 3)
        );
    });
}
