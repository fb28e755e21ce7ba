use palisade_core::{
    JobId, Number, Timestamp,
    history::{Event, What},
};

use super::News;

fn entry(number: u64) -> Event {
    Event::of_job(Timestamp(number), JobId(Number::new(1).unwrap()), What::Retried)
}

fn told(news: &mut tokio::sync::broadcast::Receiver<crate::events::Batch>) -> Vec<u64> {
    let mut all = Vec::new();
    while let Ok(batch) = news.try_recv() {
        all.extend(batch.iter().map(|event| event.at.0));
    }
    all
}

#[test]
fn our_own_commits_are_told_in_the_journals_order() {
    let news = News::default();
    let mut heard = news.listen();
    news.committed(2, vec![entry(3)]);
    assert!(told(&mut heard).is_empty());
    news.committed(0, vec![entry(1), entry(2)]);
    assert_eq!(told(&mut heard), [1, 2, 3]);
}

#[test]
fn what_was_read_is_not_told_again_by_whoever_committed_it() {
    let news = News::default();
    let mut heard = news.listen();
    news.committed(1, vec![entry(2)]);
    news.read(vec![(1, entry(1)), (2, entry(2)), (3, entry(3))]);
    news.committed(2, vec![entry(3)]);
    news.committed(3, vec![entry(4)]);
    assert_eq!(told(&mut heard), [1, 2, 3, 4]);
}

#[test]
fn a_listener_hears_nothing_from_before_the_start() {
    let news = News::default();
    news.begin(7);
    let mut heard = news.listen();
    news.committed(6, vec![entry(7)]);
    news.committed(7, vec![entry(8)]);
    assert_eq!(told(&mut heard), [8]);
}
