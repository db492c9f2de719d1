//! Answers that are held in memory until the client has read them.

use coffer_s3::limits::{ANSWER_FREE_BYTES, ANSWERS_MAX_BYTES};

use crate::front::{Answer, Ask, Front};

/// A batch deletion whose answer has some 6 MB, and which deletes `k` besides.
fn delete(front: &Front) -> Ask<'_> {
    let name = "&quot;".repeat(1_000);
    let objects: String = (0..999)
        .map(|i| format!("<Object><Key>{name}{i}</Key></Object>"))
        .collect();
    let body = format!("<Delete><Object><Key>k</Key></Object>{objects}</Delete>");
    front.ask("POST", "/buc").deletes(body)
}

/// Holds answers unread until there is no room for another.
async fn fill(front: &Front) -> Vec<Answer> {
    let mut held = Vec::new();
    for _ in 0..10 {
        let answer = delete(front).send().await;
        if answer.status != 200 {
            answer.refused(503, "SlowDown");
            return held;
        }
        held.push(answer);
    }
    panic!("there is room for every answer");
}

#[tokio::test]
async fn answers_that_are_not_read_share_their_room() {
    let front = Front::with_bucket().await;
    let held = fill(&front).await;
    let bytes: usize = held.iter().map(|answer| answer.body.len()).sum();
    assert!(held.len() > 3, "{}", held.len());
    assert!(bytes <= ANSWERS_MAX_BYTES + held.len() * ANSWER_FREE_BYTES);

    // What finds no room is not done, and what is small always finds some.
    front.put("k", "x").await;
    delete(&front).send().await.refused(503, "SlowDown");
    front.read("k").await.expect(200);
    let body = "<Delete><Object><Key>other</Key></Object></Delete>";
    let small = front.ask("POST", "/buc").deletes(body);
    small.send().await.expect(200);

    drop(held);
    delete(&front).send().await.expect(200);
    front.read("k").await.refused(404, "NoSuchKey");
    front.close().await;
}

#[tokio::test]
async fn pages_are_shorter_where_there_is_no_room_for_long_ones() {
    let front = Front::with_bucket().await;
    let names: Vec<_> = (0..40)
        .map(|i| format!("{i:02}{}", "'".repeat(900)))
        .collect();
    for name in &names {
        front.put(name, "").await.expect(200);
    }
    let list = |after: &str| {
        let list = front.ask("GET", "/buc").query("list-type", "2");
        list.query("start-after", after)
            .query("encoding-type", "url")
    };
    let whole = list("").send().await.expect(200);
    assert_eq!(whole.elements("Key").len(), 40);

    let held = fill(&front).await;
    let mut after = String::new();
    let mut pages = 0;
    loop {
        let page = list(&after).send().await.expect(200);
        assert!(page.body.len() <= ANSWER_FREE_BYTES, "{}", page.body.len());
        let keys = page.elements("Key").len();
        let begin = names.iter().filter(|name| **name <= after).count();
        assert!(keys > 0);
        pages += 1;
        match page.element("IsTruncated").as_str() {
            "true" => after.clone_from(&names[begin + keys - 1]),
            _ => {
                assert_eq!(begin + keys, 40);
                break;
            }
        }
    }
    assert!(pages > 1);
    drop(held);
    assert_eq!(list("").send().await.elements("Key").len(), 40);
    front.close().await;
}
