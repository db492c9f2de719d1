//! What the service manager is told, by the protocol of systemd's `sd_notify`: one datagram to the
//! socket that `$NOTIFY_SOCKET` names. Without that variable, nothing.

use sd_notify::{NotifyState, notify};

/// The server serves; `status` is shown by `systemctl status`.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// No new connections are taken; requests under way may end.
pub fn stopping() {
    let status = "stopping: requests under way may end";
    tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// A manager that can't be told ends us in its own time; that is no reason not to serve until then.
fn tell(what: &[NotifyState<'_>]) {
    if let Err(error) = notify(what) {
        tracing::warn!(%error, "the service manager ($NOTIFY_SOCKET) could not be told");
    }
}
