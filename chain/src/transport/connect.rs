//! How a socket is connected.

use std::io;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite;
use tungstenite::client::IntoClientRequest;
use tungstenite::http::{HeaderValue, header::AUTHORIZATION};
use tungstenite::protocol::WebSocketConfig;

use super::ipc::Ipc;
use super::{ConnectError, Duplex, Limits, Socket, Wire};
use crate::endpoint::{Endpoint, Kind, Web};

/// Whose word is taken for a server's name.
#[derive(Clone, Default, Debug)]
pub enum Roots {
    /// The system's root certificates, or those of the file that `SSL_CERT_FILE` names.
    #[default]
    System,
    /// These alone.
    Only(Vec<CertificateDer<'static>>),
}

/// Connects to `endpoint` within the deadline of `limits`.
pub async fn connect(
    endpoint: &Endpoint,
    limits: &Limits,
    roots: &Roots,
) -> Result<Socket, ConnectError> {
    let connected = timeout(limits.connect, async {
        match endpoint.kind() {
            Kind::Web(web) => connect_web(endpoint, web, limits, roots).await,
            Kind::Ipc(path) => {
                let stream = UnixStream::connect(path)
                    .await
                    .map_err(|source| unreachable_at(endpoint, source))?;
                Ok(Socket {
                    wire: Wire::Ipc(Ipc::new(stream, limits.message_bytes)),
                    keep_alive: None,
                    ended: false,
                })
            }
        }
    });
    connected.await.unwrap_or_else(|_| {
        Err(ConnectError::Deadline {
            endpoint: endpoint.clone(),
            after: limits.connect,
        })
    })
}

fn unreachable_at(endpoint: &Endpoint, source: io::Error) -> ConnectError {
    ConnectError::Unreachable {
        endpoint: endpoint.clone(),
        source,
    }
}

async fn connect_web(
    endpoint: &Endpoint,
    web: &Web,
    limits: &Limits,
    roots: &Roots,
) -> Result<Socket, ConnectError> {
    let connector = if web.tls {
        Some(TlsConnector::from(tls(endpoint, roots)?))
    } else {
        None
    };
    let tcp = TcpStream::connect((web.host.as_str(), web.port))
        .await
        .map_err(|source| unreachable_at(endpoint, source))?;
    // A call is one small write whose answer is waited for.
    tcp.set_nodelay(true)
        .map_err(|source| unreachable_at(endpoint, source))?;
    let stream: Box<dyn Duplex> = match connector {
        None => Box::new(tcp),
        Some(connector) => {
            let failed = |source| ConnectError::Tls {
                endpoint: endpoint.clone(),
                source,
            };
            let name = ServerName::try_from(web.host.clone())
                .map_err(|error| failed(io::Error::other(error)))?;
            Box::new(connector.connect(name, tcp).await.map_err(failed)?)
        }
    };
    let mut request = web
        .url()
        .into_client_request()
        .map_err(|error| handshake(endpoint, &error))?;
    if let Some(credentials) = &web.credentials {
        let mut value = HeaderValue::try_from(format!("Basic {}", base64(credentials)))
            .map_err(|error| handshake(endpoint, &error.into()))?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits.message_bytes))
        .max_frame_size(Some(limits.message_bytes));
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((stream, _)) => Ok(Socket::web(stream, limits)),
        Err(tungstenite::Error::Http(response)) => Err(ConnectError::Status {
            endpoint: endpoint.clone(),
            status: response.status().as_u16(),
        }),
        Err(tungstenite::Error::Io(source)) => Err(unreachable_at(endpoint, source)),
        Err(error) => Err(handshake(endpoint, &error)),
    }
}

fn handshake(endpoint: &Endpoint, error: &tungstenite::Error) -> ConnectError {
    ConnectError::Handshake {
        endpoint: endpoint.clone(),
        what: error.to_string(),
    }
}

fn tls(endpoint: &Endpoint, roots: &Roots) -> Result<Arc<ClientConfig>, ConnectError> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::System => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)
        }
        Roots::Only(certificates) => store.add_parsable_certificates(certificates.iter().cloned()),
    };
    if store.is_empty() {
        return Err(ConnectError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Tls {
            endpoint: endpoint.clone(),
            source: io::Error::other(error),
        })?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0_u32, |word, at| {
            word << 8 | u32::from(chunk.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            let digit = (word >> (18 - 6 * at) & 63) as usize;
            match ALPHABET.get(digit) {
                Some(&byte) if at <= chunk.len() => text.push(char::from(byte)),
                _ => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn the_examples_of_rfc_4648_encode_as_it_says() {
        let examples =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(
            examples,
            [
                "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"
            ]
        );
    }
}
