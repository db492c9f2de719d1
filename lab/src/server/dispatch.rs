//! The server's process: who answers a question that has come.

use std::fs::File;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cipher::algorithm::TAG_BYTES;
use crate::host::machine::core_count;
use crate::server::model::Model;
use crate::server::protocol::{
    PIECE_BYTES, answer, content, question, sealed_piece, shared_content,
};

/// Serves until it is ended; tells its address in a line on standard output.
pub fn serve(model: Model) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    match model {
        Model::Async => serve_tasks(listener),
        _ => serve_questions(&listener, model),
    }
}

/// A connection with a question of so many bytes.
type Question = (TcpStream, usize);

/// Connections whose question has been answered come back here.
#[derive(Clone)]
struct Back {
    connections: mpsc::Sender<TcpStream>,
    wake: Arc<UnixStream>,
}

impl Back {
    /// A connection that broke does not come back.
    fn answered(&self, (mut stream, count): Question) {
        if answer(&mut stream, count, true).is_ok() {
            self.give(stream);
        }
    }

    fn give(&self, stream: TcpStream) {
        let _ = self.connections.send(stream);
        let _ = io::Write::write(&mut &*self.wake, b"!");
    }
}

/// One thread waits for questions of all clients, and answers them or has them answered.
fn serve_questions(listener: &TcpListener, model: Model) -> io::Result<()> {
    let (wake, mut woken) = UnixStream::pair()?;
    woken.set_nonblocking(true)?;
    let (connections, returned) = mpsc::channel();
    let back = Back {
        connections,
        wake: Arc::new(wake),
    };
    let pool = (model == Model::Pool).then(|| start_pool(&back));
    let launcher = Arc::new(Launcher::new()?);
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
            let Ok(Some(count)) = question(&mut stream) else {
                continue;
            };
            match model {
                Model::Plain | Model::One | Model::Async => {
                    if answer(&mut stream, count, model.encrypts()).is_ok() {
                        idle.push(stream);
                    }
                }
                Model::ThreadPerRequest => {
                    let back = back.clone();
                    thread::spawn(move || back.answered((stream, count)));
                }
                Model::ProcessPerRequest => {
                    let (back, launcher) = (back.clone(), launcher.clone());
                    thread::spawn(move || {
                        if launcher.answer(&stream, count).is_ok() {
                            back.give(stream);
                        }
                    });
                }
                Model::Pool => {
                    if let Some(pool) = &pool {
                        let _ = pool.send((stream, count));
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

fn start_pool(back: &Back) -> mpsc::Sender<Question> {
    let (asking, questions) = mpsc::channel::<Question>();
    let questions = Arc::new(Mutex::new(questions));
    for _ in 0..core_count() {
        let (back, questions) = (back.clone(), questions.clone());
        thread::spawn(move || {
            loop {
                let next = questions.lock().recv();
                match next {
                    Ok(question) => back.answered(question),
                    Err(_) => return,
                }
            }
        });
    }
    asking
}

/// What a process for each request is started from.
struct Launcher {
    program: PathBuf,
    content: File,
}

impl Launcher {
    fn new() -> io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            content: shared_content()?,
        })
    }

    /// The lab again, with the connection as its standard output, and the content as its input.
    fn answer(&self, stream: &TcpStream, count: usize) -> io::Result<()> {
        let connection = OwnedFd::from(stream.try_clone()?);
        let status = Command::new(&self.program)
            .args(["answer-request", &count.to_string()])
            .stdin(Stdio::from(self.content.try_clone()?))
            .stdout(Stdio::from(connection))
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other("the process failed"))
        }
    }
}

fn serve_tasks(listener: TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            // A connection that breaks concerns its client alone.
            tokio::spawn(async move { drop(converse(stream).await) });
        }
    })
}

async fn converse(mut stream: tokio::net::TcpStream) -> io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE_BYTES + TAG_BYTES);
    loop {
        let count = stream.read_u32_le().await? as usize;
        for (number, plain) in content(count).chunks(PIECE_BYTES).enumerate() {
            sealed_piece(number, plain, &mut piece)?;
            stream.write_all(&piece).await?;
        }
    }
}
