//! Ending a transfer from outside of the thread that moves it.

use std::io;
use std::net::{Shutdown, TcpStream};

use parking_lot::Mutex;

/// Ends what is received, at once: what waits for bytes on its connection finds that at its end.
#[derive(Default)]
pub(crate) struct Stop(Mutex<State>);

#[derive(Default)]
struct State {
    is_asked_for: bool,
    connection: Option<TcpStream>,
}

impl Stop {
    /// Ends it, now or before it begins.
    pub(crate) fn stop(&self) {
        let mut state = self.0.lock();
        state.is_asked_for = true;
        if let Some(connection) = state.connection.take() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// It goes by this connection.
    ///
    /// # Errors
    /// When it was stopped already.
    pub(super) fn goes_by(&self, connection: &TcpStream) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.is_asked_for {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "it was stopped",
            ));
        }
        state.connection = Some(connection.try_clone()?);
        Ok(())
    }

    /// It is over, and its connection may serve others.
    pub(super) fn is_over(&self) {
        self.0.lock().connection = None;
    }
}
