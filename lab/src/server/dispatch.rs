//! The server's process: who answers a request that has come.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::host::machine::core_count;
use crate::server::memory::{Memory, sealed_piece};
use crate::server::model::Model;
use crate::server::protocol::{
    DONE, HEAD_BYTES, PIECE_BYTES, Request, Wish, content, sealed_bytes,
};

/// Serves until it is ended; tells its address in a line on standard output.
pub fn serve(model: Model) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let memory = Arc::new(Memory::new()?);
    match model {
        Model::Async => serve_tasks(listener, memory),
        _ => serve_requests(&listener, model, memory),
    }
}

/// A connection, and what has been read from it.
type Asked = (TcpStream, Request);

/// Connections whose request has been answered come back here.
#[derive(Clone)]
struct Back {
    connections: mpsc::Sender<TcpStream>,
    wake: Arc<UnixStream>,
    memory: Arc<Memory>,
}

impl Back {
    /// A connection that broke does not come back.
    fn answered(&self, (mut stream, request): Asked) {
        if self.memory.answer(&mut stream, request, true).is_ok() {
            self.give(stream);
        }
    }

    fn give(&self, stream: TcpStream) {
        let _ = self.connections.send(stream);
        let _ = io::Write::write(&mut &*self.wake, b"!");
    }
}

/// One thread waits for requests of all clients, and answers them or has them answered.
fn serve_requests(listener: &TcpListener, model: Model, memory: Arc<Memory>) -> io::Result<()> {
    let (wake, mut woken) = UnixStream::pair()?;
    woken.set_nonblocking(true)?;
    let (connections, returned) = mpsc::channel();
    let back = Back {
        connections,
        wake: Arc::new(wake),
        memory: memory.clone(),
    };
    let pool = (model == Model::Pool).then(|| start_pool(&back));
    let program = std::env::current_exe()?;
    let mut idle: Vec<TcpStream> = Vec::new();
    loop {
        let ready = wait(listener, &woken, &idle)?;
        let _ = io::Read::read(&mut woken, &mut [0; 4096]);
        let mut asked = Vec::new();
        // From the back, so that the places before stay where they are.
        for index in ready.asked.into_iter().rev() {
            asked.push(idle.swap_remove(index));
        }
        for mut stream in asked {
            let Ok(Some(request)) = Request::read(&mut stream) else {
                continue;
            };
            match model {
                Model::Plain | Model::One | Model::Async => {
                    let answered = memory.answer(&mut stream, request, model.encrypts());
                    if answered.is_ok() {
                        idle.push(stream);
                    }
                }
                Model::ThreadPerRequest => {
                    let back = back.clone();
                    thread::spawn(move || back.answered((stream, request)));
                }
                Model::ProcessPerRequest => {
                    let (back, program) = (back.clone(), program.clone());
                    thread::spawn(move || {
                        if by_process(&program, &back.memory, &stream, request).is_ok() {
                            back.give(stream);
                        }
                    });
                }
                Model::Pool => {
                    if let Some(pool) = &pool {
                        let _ = pool.send((stream, request));
                    }
                }
            }
        }
        idle.extend(returned.try_iter());
        if ready.connecting {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            idle.push(stream);
        }
    }
}

struct Ready {
    connecting: bool,
    /// Places among the idle ones, in order.
    asked: Vec<usize>,
}

fn wait(listener: &TcpListener, woken: &UnixStream, idle: &[TcpStream]) -> io::Result<Ready> {
    let mut all = vec![
        PollFd::new(listener, PollFlags::IN),
        PollFd::new(woken, PollFlags::IN),
    ];
    all.extend(idle.iter().map(|stream| PollFd::new(stream, PollFlags::IN)));
    poll(&mut all, None)?;
    let happened = |place: &PollFd<'_>| !place.revents().is_empty();
    let connections = all[2..].iter().enumerate();
    Ok(Ready {
        connecting: happened(&all[0]),
        asked: connections
            .filter(|(_, one)| happened(one))
            .map(|(index, _)| index)
            .collect(),
    })
}

fn start_pool(back: &Back) -> mpsc::Sender<Asked> {
    let (asking, requests) = mpsc::channel::<Asked>();
    let requests = Arc::new(Mutex::new(requests));
    for _ in 0..core_count() {
        let (back, requests) = (back.clone(), requests.clone());
        thread::spawn(move || {
            loop {
                let next = requests.lock().recv();
                match next {
                    Ok(asked) => back.answered(asked),
                    Err(_) => return,
                }
            }
        });
    }
    asking
}

/// The lab again, with the connection as its standard output, and the memory as its input.
fn by_process(
    program: &Path,
    memory: &Memory,
    stream: &TcpStream,
    request: Request,
) -> io::Result<()> {
    let connection = OwnedFd::from(stream.try_clone()?);
    let numbers = [request.bytes, request.place].map(|number| number.to_string());
    let status = Command::new(program)
        .args(["answer-request", &request.wish.argument()])
        .args(numbers)
        .stdin(Stdio::from(memory.file()?))
        .stdout(Stdio::from(connection))
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other("the process failed"))
    }
}

fn serve_tasks(listener: TcpListener, memory: Arc<Memory>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let memory = memory.clone();
            // A connection that breaks concerns its client alone.
            tokio::spawn(async move { drop(converse(stream, &memory).await) });
        }
    })
}

async fn converse(mut stream: tokio::net::TcpStream, memory: &Memory) -> io::Result<()> {
    let mut piece = Vec::with_capacity(sealed_bytes(PIECE_BYTES, true));
    loop {
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head).await?;
        let request = Request::of_head(head);
        let request = request.ok_or_else(|| io::Error::other("not a request"))?;
        match request.wish {
            Wish::Send => {
                for (number, plain) in content(request.bytes).chunks(PIECE_BYTES).enumerate() {
                    sealed_piece(number, plain, &mut piece)?;
                    stream.write_all(&piece).await?;
                }
            }
            Wish::Store => {
                for (number, bytes) in request.pieces() {
                    piece.resize(bytes, 0);
                    stream.read_exact(&mut piece).await?;
                    memory.store(request.place, number, &mut piece, true)?;
                }
                stream.write_u8(DONE).await?;
            }
            Wish::GiveBack => {
                for (number, bytes) in request.pieces() {
                    piece.resize(sealed_bytes(bytes, true), 0);
                    memory.stored(request.place, number, &mut piece)?;
                    stream.write_all(&piece).await?;
                }
            }
            Wish::Forget => {
                memory.forget()?;
                stream.write_u8(DONE).await?;
            }
        }
    }
}
