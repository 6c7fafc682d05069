//! What subscriptions bring.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use serde_json::Value;

use super::SubscriptionId;
use super::shared::Shared;

/// The notifications of all subscriptions of a connection, in the order of their arrival.
///
/// It ends with the connection, after what had come before. Dropping it means that none are wanted: what comes is counted.
#[derive(Debug)]
pub struct Notifications(Arc<Shared>);

impl Notifications {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::clone(shared))
    }

    /// The next one, or `None` when the connection has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<(SubscriptionId, Value)> {
        std::future::poll_fn(|cx| self.0.poll_notification(cx)).await
    }
}

impl Stream for Notifications {
    type Item = (SubscriptionId, Value);

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_notification(cx)
    }
}

impl Drop for Notifications {
    fn drop(&mut self) {
        self.0.leave_untaken();
    }
}
