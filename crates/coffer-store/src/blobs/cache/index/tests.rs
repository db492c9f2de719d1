use proptest::prelude::*;

use super::*;

fn key(number: u8) -> Key {
    (BucketId([1; 16]), BlobId([number; 16]))
}

fn there(number: u8, index: &mut Index<u8>) -> bool {
    index.hold(key(number)) != Known::Nothing
}

fn let_go(index: &mut Index<u8>, number: u8) {
    index.let_go(key(number), index.which(key(number)));
}

fn evicted(index: &mut Index<u8>) -> Vec<u8> {
    std::iter::from_fn(|| index.pop())
        .map(|((_, id), _)| id.0[0])
        .collect()
}

#[test]
fn what_was_not_used_for_longest_goes_first() {
    let mut index = Index::default();
    // As a look finds them: 1 was used last.
    index.found([(key(1), 10), (key(2), 10), (key(3), 10)].into_iter());
    assert_eq!(index.bytes(), 30);
    assert!(there(3, &mut index));
    let_go(&mut index, 3);
    index.adopt(key(4), 10);
    let_go(&mut index, 4);
    // One that is known is not taken twice.
    index.found([(key(4), 10), (key(5), 10)].into_iter());
    assert_eq!(
        (evicted(&mut index), index.bytes()),
        (vec![5, 2, 1, 3, 4], 0)
    );
}

#[test]
fn what_is_in_use_or_only_here_is_not_evicted() {
    let mut index = Index::default();
    index.found([(key(1), 10)].into_iter());
    assert!(there(1, &mut index) && there(1, &mut index));
    let_go(&mut index, 1);
    assert!(evicted(&mut index).is_empty());
    index.begin_own(key(2));
    index.made(key(2), 7);
    assert_eq!(index.bytes(), 17);
    assert!(there(2, &mut index));
    let_go(&mut index, 2);
    assert!(evicted(&mut index).is_empty());
    let_go(&mut index, 1);
    index.stored(key(2));
    assert_eq!((evicted(&mut index), index.bytes()), (vec![1, 2], 0));
    index.begin_own(key(3));
    index.not_made(key(3));
    index.begin_own(key(4));
    index.made(key(4), 1);
    index.not_made(key(4));
    assert!(!there(3, &mut index));
    index.none_is_only_here();
    assert_eq!(evicted(&mut index), [4]);
}

#[test]
fn what_is_on_its_way_is_shared_and_stays_until_it_came() {
    let mut index = Index::default();
    index.begin(key(1), 77);
    index.comes(key(1), &77, 10);
    assert_eq!(index.hold(key(1)), Known::Coming(77));
    let_go(&mut index, 1);
    let_go(&mut index, 1);
    assert_eq!((evicted(&mut index), index.bytes()), (vec![], 10));
    assert!(index.came(key(1), &77));
    assert_eq!(evicted(&mut index), [1]);
    index.begin(key(2), 78);
    index.comes(key(2), &77, 7);
    index.comes(key(2), &78, 10);
    assert!(!index.give_up(key(2), &78));
    index.failed(key(2), &77);
    assert_eq!(index.bytes(), 10, "another brings it");
    assert!(!index.came(key(2), &77));
    let_go(&mut index, 2);
    assert!(index.give_up(key(2), &78));
    let_go(&mut index, 2);
    assert_eq!((there(2, &mut index), index.bytes()), (false, 0));
}

#[test]
fn what_waits_for_its_turn_to_be_fetched_does_not_count() {
    let mut index = Index::default();
    for number in 1..9 {
        index.begin(key(number), number);
    }
    assert_eq!(index.bytes(), 0);
    index.comes(key(3), &3, 10);
    index.comes(key(3), &3, 10);
    assert_eq!(index.bytes(), 10);
    index.failed(key(3), &3);
    index.failed(key(4), &4);
    assert_eq!(index.bytes(), 0);
}

#[test]
fn one_who_used_a_file_that_went_has_no_part_in_the_one_that_came() {
    let mut index = Index::default();
    index.adopt(key(1), 10);
    let first = index.which(key(1));
    assert!(there(1, &mut index));
    // One of two finds it bad, and has it fetched anew.
    assert!(index.forget_used(key(1), first));
    index.begin(key(1), 7);
    index.comes(key(1), &7, 10);
    let second = index.which(key(1));
    index.let_go(key(1), first);
    // The other finds it as well, and ends.
    assert!(!index.forget_used(key(1), first));
    index.let_go(key(1), first);
    assert!(evicted(&mut index).is_empty(), "it is on its way");
    assert!(index.is_brought(key(1), &7) && index.came(key(1), &7));
    assert!(evicted(&mut index).is_empty(), "it is in use");
    index.let_go(key(1), second);
    assert_eq!(evicted(&mut index), [1]);
    assert_eq!(index.bytes(), 0);
}

#[test]
fn a_bucket_goes_as_a_whole() {
    let mut index = Index::<u8>::default();
    let other = (BucketId([2; 16]), BlobId([9; 16]));
    index.found([(key(1), 10), (other, 5)].into_iter());
    index.begin_own(key(2));
    index.made(key(2), 3);
    index.forget_bucket(BucketId([1; 16]));
    assert_eq!(index.bytes(), 5);
    assert_eq!(evicted(&mut index), [9]);
}

proptest! {
    /// Whatever is called in whatever order, the sum is that of what is there.
    #[test]
    fn the_sum_is_right(steps in prop::collection::vec((0..9_u8, 0..4_u8), 0..200)) {
        let mut index = Index::default();
        for (step, number) in steps {
            let key = key(number);
            match step {
                0 => drop(index.hold(key)),
                1 => index.adopt(key, 10),
                2 => index.found([(key, 10)].into_iter()),
                3 => {
                    index.begin(key, 0);
                    index.comes(key, &0, 10);
                }
                4 => drop(index.came(key, &0)),
                5 => {
                    index.begin_own(key);
                    index.made(key, 10);
                }
                6 => index.stored(key),
                7 => index.let_go(key, index.which(key)),
                _ => drop(index.pop()),
            }
            let held: u64 = index.held.values().map(|held| held.bytes).sum();
            let idle: u64 = index.idle.values().sum();
            prop_assert_eq!(held + idle, index.bytes());
            prop_assert!(!index.held.keys().any(|held| index.idle.contains_key(held)));
        }
    }
}
