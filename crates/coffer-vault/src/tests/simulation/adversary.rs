//! What goes wrong: machines pause, die and start again, ways are cut off, the store and the
//! network fail, clocks are set wrong; several of these at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use super::clients::Gateways;
use super::gateway::Gateway;
use super::network::{Cut, Weather};
use super::world::World;

/// Who does it.
#[derive(Clone)]
pub(super) struct Adversary {
    pub(super) world: Arc<World>,
    pub(super) gateways: Gateways,
    pub(super) is_over: Arc<AtomicBool>,
}

impl Adversary {
    /// Goes on until then.
    pub(super) async fn run(self, until: Duration) {
        let chance = self.world.chance.clone();
        while self.world.now() < until {
            sleep(chance.millis(300, 8_000)).await;
            let gateway = self.any();
            match chance.below(15) {
                0..=3 => self.pause(gateway),
                4..=5 => self.kill(gateway),
                6 => self.stop(gateway),
                7..=8 => self.cut(gateway),
                9..=10 => self.change_weather(),
                11..=13 => self.suspend(gateway),
                _ => self.set_clock(&gateway),
            }
        }
    }

    /// Ends all of it.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.world.network.set_weather(Weather::default());
        for gateway in self.gateways.iter() {
            gateway.host.go_on();
            self.world.network.cut(gateway.host.number, Cut::default());
        }
        self.world.note("all goes well from here on");
    }

    /// More often than not the one that serves.
    fn any(&self) -> Arc<Gateway> {
        let chance = &self.world.chance;
        let serving = self.gateways.iter().find(|gateway| gateway.serves());
        let is_serving = chance.once_in(2);
        let any = &self.gateways[chance.below(self.gateways.len() as u64) as usize];
        serving.filter(|_| is_serving).unwrap_or(any).clone()
    }

    fn note(&self, gateway: &Gateway, what: &str) {
        self.world
            .note(&format!("gateway {} {what}", gateway.host.number));
    }

    /// How long something lasts: mostly for a moment, at times longer than a lease does, and at
    /// times longer than what the log keeps.
    fn while_it_lasts(&self) -> Duration {
        let chance = &self.world.chance;
        match chance.below(10) {
            0..=5 => chance.millis(20, 3_000),
            6..=8 => chance.millis(3_000, 12_000),
            _ => chance.millis(15_000, 70_000),
        }
    }

    fn later(&self, after: Duration, done: impl FnOnce(&Self) + Send + 'static) {
        let this = self.clone();
        tokio::spawn(async move {
            sleep(after).await;
            if !this.is_over.load(Ordering::SeqCst) {
                done(&this);
            }
        });
    }

    fn pause(&self, gateway: Arc<Gateway>) {
        let lasts = self.while_it_lasts();
        self.note(&gateway, &format!("is paused for {lasts:?}"));
        gateway.host.pause();
        self.later(lasts, move |this| {
            this.note(&gateway, "goes on");
            gateway.host.go_on();
        });
    }

    fn kill(&self, gateway: Arc<Gateway>) {
        let chance = &self.world.chance;
        self.note(&gateway, "is killed");
        gateway.kill(chance.once_in(2));
        self.start_again(gateway, chance.millis(10, 5_000));
    }

    fn stop(&self, gateway: Arc<Gateway>) {
        self.note(&gateway, "is told to stop");
        gateway.stop();
        // As service managers do it, when it takes too long.
        self.start_again(gateway, Duration::from_secs(10));
    }

    /// Also when all that goes wrong has come to an end.
    fn start_again(&self, gateway: Arc<Gateway>, after: Duration) {
        let this = self.clone();
        tokio::spawn(async move {
            sleep(after).await;
            gateway.kill(true);
            this.note(&gateway, "starts");
            gateway.start();
        });
    }

    fn cut(&self, gateway: Arc<Gateway>) {
        let chance = &self.world.chance;
        let cuts = [(true, true), (true, false), (false, true), (false, false)];
        let (there, back) = chance.of_these(&cuts);
        let cut = Cut {
            there,
            back,
            slow: chance.millis(0, 900),
            ..Cut::default()
        };
        let lasts = self.while_it_lasts();
        self.note(&gateway, &format!("is cut off, {cut:?}, for {lasts:?}"));
        let number = gateway.host.number;
        self.world.network.cut(number, cut);
        self.later(lasts, move |this| {
            this.world.network.cut(number, Cut::default())
        });
    }

    /// It is paused while what it asked for is on its way, and that arrives when others may have
    /// gone on: when its lease has just ended, or long after that.
    fn suspend(&self, gateway: Arc<Gateway>) {
        let chance = &self.world.chance;
        let lasts = chance.of_these(&[(4_500, 8_000), (18_000, 40_000)]);
        let held = chance.millis(lasts.0, lasts.1);
        let cut = Cut {
            held,
            ..Cut::default()
        };
        let number = gateway.host.number;
        self.note(
            &gateway,
            &format!("is suspended, and its requests held for {held:?}"),
        );
        self.world.network.cut(number, cut);
        let before = chance.millis(20, 400);
        let after = held + chance.millis(0, 2_000);
        self.later(before, move |this| {
            this.world.network.cut(number, Cut::default());
            gateway.host.pause();
            this.later(after, move |_| gateway.host.go_on());
        });
    }

    fn change_weather(&self) {
        let chance = &self.world.chance;
        let often = |is: u64| if chance.once_in(2) { is } else { 0 };
        let weather = Weather {
            slow_ms: chance.of_these(&[0, 100, 1_500]),
            lost: often(20),
            late: often(8),
            refused: often(10),
            unheard: often(8),
            twice: often(8),
        };
        self.world.note(&format!("{weather:?}"));
        self.world.network.set_weather(weather);
        let lasts = self.while_it_lasts();
        self.later(lasts, |this| {
            this.world.network.set_weather(Weather::default())
        });
    }

    fn set_clock(&self, gateway: &Gateway) {
        let chance = &self.world.chance;
        let days = 24 * 3_600 * 1_000;
        let by_ms = chance.of_these(&[-days, -3_600_000, -2_000, 2_000, 3_600_000, 2 * days]);
        self.note(gateway, &format!("has its clock set by {by_ms} ms"));
        gateway.host.set_clock(by_ms);
    }
}
