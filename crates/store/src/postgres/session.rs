//! One connection, and questions sent along it one after the other without waiting for answers.

use std::{future::Future, pin::Pin, task::Poll};

use deadpool_postgres::Client;
use tokio_postgres::{Row, types::ToSql};

use super::statements;

/// What a question came to.
pub(super) type Answer = Result<Vec<Row>, tokio_postgres::Error>;
/// A question that is sent when it is polled first.
pub(super) type Question<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// A question with its values, to be sent along a connection.
macro_rules! question {
    ($client:expr, $sql:expr $(, $value:expr)* $(,)?) => {{
        let client = $client;
        let values: Vec<Box<dyn tokio_postgres::types::ToSql + Send + Sync>> =
            vec![$(Box::new($value)),*];
        $crate::postgres::session::ask(client, $sql, values)
    }};
}
pub(super) use question;

/// Makes a question.
pub(super) fn ask<'a>(
    client: &'a Client,
    sql: &'static str,
    values: Vec<Box<dyn ToSql + Send + Sync>>,
) -> Question<'a> {
    Box::pin(async move {
        // Known since the connection was made: this does not wait.
        let statement = client.prepare_cached(sql).await?;
        let values: Vec<&(dyn ToSql + Sync)> =
            values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        client.query(&statement, &values).await
    })
}

/// Sends questions in their order, then waits for all the answers. A connection carries questions
/// on by itself, so that none waits for another's answer.
pub(super) async fn pipeline(questions: Vec<Question<'_>>) -> Vec<Answer> {
    let mut asked = Vec::with_capacity(questions.len());
    for mut question in questions {
        // Polled once, it is sent.
        let first = std::future::poll_fn(|context| Poll::Ready(question.as_mut().poll(context)));
        asked.push((first.await, question));
    }
    let mut answers = Vec::with_capacity(asked.len());
    for (first, question) in asked {
        answers.push(match first {
            Poll::Ready(answer) => answer,
            Poll::Pending => question.await,
        });
    }
    answers
}

/// Lets the connection know every statement, so that none has to be introduced in the middle of a
/// pipeline: that would change the order in which rows are locked and numbers are drawn.
pub(super) async fn introduce(client: &Client) -> Result<(), tokio_postgres::Error> {
    for file in statements::ALL {
        for sql in *file {
            client.prepare_cached(sql).await?;
        }
    }
    Ok(())
}
