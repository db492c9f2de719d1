//! Measuring, and the table in the end.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The best of each measurement: what, and seconds of wall and of CPU time for each of its unit.
static BEST: Mutex<Vec<(String, Unit, f64, f64)>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Piece,
    Gigabyte,
}

async fn timed<T>(what: &str, unit: Unit, count: f64, work: impl Future<Output = T>) -> T {
    let (began, cpu_began) = (Instant::now(), cpu());
    let out = work.await;
    let wall = began.elapsed().as_secs_f64() / count;
    let cpu = (cpu() - cpu_began).as_secs_f64() / count;
    let mut best = BEST.lock();
    match best.iter_mut().find(|(name, ..)| name == what) {
        Some((_, _, least_wall, least_cpu)) => {
            *least_wall = least_wall.min(wall);
            *least_cpu = least_cpu.min(cpu);
        }
        None => best.push((what.to_owned(), unit, wall, cpu)),
    }
    out
}

/// Measures the cost of each of `count` pieces.
pub(crate) async fn pieces(what: &str, count: usize, work: impl Future<Output = ()>) {
    timed(what, Unit::Piece, count as f64, work).await;
}

/// Measures the cost of a gigabyte.
pub(crate) async fn gigabytes(what: &str, bytes: usize, work: impl Future<Output = ()>) {
    timed(what, Unit::Gigabyte, bytes as f64 / 1e9, work).await;
}

pub(crate) fn report() {
    let best = BEST.lock();
    let of_bare = |what: &str, wall: f64| {
        let order = ["ascending", "random"]
            .into_iter()
            .find(|order| what.contains(order))?;
        let is_bare = |what: &str| what.starts_with("bare") && what.contains(order);
        let bare = best.iter().find(|(what, ..)| is_bare(what))?;
        Some(100.0 * bare.2 / wall).filter(|_| what.contains("32 tasks"))
    };
    for (what, unit, wall, cpu) in best.iter() {
        match unit {
            Unit::Piece => print!(
                "{what:54} {:9.0} /s   {:8.2} us of CPU",
                1.0 / wall,
                cpu * 1e6
            ),
            Unit::Gigabyte => print!("{what:54} {:9.2} GB/s {:8.3} s of CPU/GB", 1.0 / wall, cpu),
        }
        match of_bare(what, *wall) {
            Some(percent) if what.starts_with("Catalog::put") => {
                println!(" {percent:6.0} % of bare");
            }
            _ => println!(),
        }
    }
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
