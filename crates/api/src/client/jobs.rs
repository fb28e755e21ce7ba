//! Jobs: submit, look, wait, cancel, retry.

use std::time::Duration;

use reqwest::Method;

use crate::wire::{
    CancelRequest, CancelResponse, HistoryView, JobList, JobView, RecipeList, RetryRequest,
    RetryResponse, SubmitMany, SubmitManyResponse, SubmitRequest, SubmitResponse, WorkerList,
};

use super::{CALL_TIMEOUT, Client, ClientError, Twice};

impl Client {
    /// Submits one wish.
    pub async fn submit(&self, wish: &SubmitRequest) -> Result<SubmitResponse, ClientError> {
        self.post_as("/jobs", wish, Twice::by(wish.request_id.as_ref())).await
    }

    /// Submits several wishes; each is recorded or refused by itself.
    pub async fn submit_many(&self, jobs: SubmitMany) -> Result<SubmitManyResponse, ClientError> {
        self.post("/jobs", &jobs).await
    }

    /// One job, with its submissions and attempts.
    pub async fn job(&self, id: &str) -> Result<JobView, ClientError> {
        self.get(&format!("/jobs/{id}")).await
    }

    /// Jobs, newest first. `query` is the query string (`state=queued&limit=10`).
    pub async fn jobs(&self, query: &str) -> Result<JobList, ClientError> {
        self.get(&format!("/jobs?{query}")).await
    }

    /// Waits until the job is over, at most `timeout`; answers it as it stands then.
    pub async fn wait(&self, id: &str, timeout: Duration) -> Result<JobView, ClientError> {
        let path = format!("/jobs/{id}/wait?timeout_ms={}", timeout.as_millis());
        let request = self.request(Method::GET, &path).timeout(timeout + CALL_TIMEOUT);
        self.json(request).await
    }

    /// The journal's entries of one job.
    pub async fn history(&self, id: &str) -> Result<HistoryView, ClientError> {
        self.get(&format!("/jobs/{id}/history")).await
    }

    /// Withdraws submissions.
    pub async fn cancel(
        &self,
        id: &str,
        request: &CancelRequest,
    ) -> Result<CancelResponse, ClientError> {
        let twice = Twice::by(request.request_id.as_ref());
        self.post_as(&format!("/jobs/{id}/cancel"), request, twice).await
    }

    /// Asks for another try.
    pub async fn retry(
        &self,
        id: &str,
        request: &RetryRequest,
    ) -> Result<RetryResponse, ClientError> {
        let twice = Twice::by(request.request_id.as_ref());
        self.post_as(&format!("/jobs/{id}/retry"), request, twice).await
    }

    /// The recipes that the server knows.
    pub async fn recipes(&self) -> Result<RecipeList, ClientError> {
        self.get("/recipes").await
    }

    /// The workers and what they hold.
    pub async fn workers(&self) -> Result<WorkerList, ClientError> {
        self.get("/workers").await
    }

    /// Whether the server is there and serves.
    pub async fn ready(&self) -> Result<(), ClientError> {
        let request = self.http.get(format!("{}/readyz", self.url())).timeout(CALL_TIMEOUT);
        self.send(request).await.map(|_| ())
    }
}
