//! A network on which answers take longer: what a server sends arrives so much later, and not more
//! slowly.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing, Result};

const PIECE_BYTES: usize = 64 * 1_024;

/// Where connections to a server are taken whose answers are late. It stays as long as the program.
pub fn late(server: SocketAddr, by: Duration) -> Result<SocketAddr> {
    let listening = || "listening for a late network".to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").doing(listening)?;
    let address = listener.local_addr().doing(listening)?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // One that fails is closed, as by a network.
            let _ = TcpStream::connect(server).and_then(|server| join(client, server, by));
        }
    });
    Ok(address)
}

/// Moves what either sends to the other, until both have ended.
fn join(client: TcpStream, server: TcpStream, by: Duration) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut asks, mut asked) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut asks, &mut asked);
        let _ = asked.shutdown(Shutdown::Write);
    });
    let (sent, arrives) = channel();
    thread::spawn(move || deliver(client, &arrives));
    thread::spawn(move || {
        let mut server = server;
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(length) = server.read(&mut piece) {
            let is_over = length == 0;
            let due = Instant::now() + by;
            if sent.send((due, piece[..length].to_vec())).is_err() || is_over {
                return;
            }
        }
    });
    Ok(())
}

fn deliver(mut client: TcpStream, arrives: &Receiver<(Instant, Vec<u8>)>) {
    for (due, bytes) in arrives {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if bytes.is_empty() || client.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}
