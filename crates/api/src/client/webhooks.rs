//! Webhooks: who is told, and what became of what was told.

use reqwest::Method;

use crate::wire::{
    DeliveryList, DeliveryView, RotateRequest, WebhookList, WebhookRequest, WebhookView,
};

use super::{Client, ClientError};

impl Client {
    /// Adds a webhook. The answer alone has its secret.
    pub async fn add_webhook(&self, wish: &WebhookRequest) -> Result<WebhookView, ClientError> {
        self.post("/webhooks", wish).await
    }

    /// All webhooks.
    pub async fn webhooks(&self) -> Result<WebhookList, ClientError> {
        self.get("/webhooks").await
    }

    /// One webhook.
    pub async fn webhook(&self, id: &str) -> Result<WebhookView, ClientError> {
        self.get(&format!("/webhooks/{id}")).await
    }

    /// Removes a webhook, and all that was still to be told to it.
    pub async fn remove_webhook(&self, id: &str) -> Result<(), ClientError> {
        self.send(self.request(Method::DELETE, &format!("/webhooks/{id}"))).await.map(drop)
    }

    /// Gives a webhook another secret. The answer alone has it.
    pub async fn rotate_webhook(
        &self,
        id: &str,
        asked: &RotateRequest,
    ) -> Result<WebhookView, ClientError> {
        self.post(&format!("/webhooks/{id}/rotate"), asked).await
    }

    /// A webhook's notifications. `query` is the query string (`state=dead&limit=10`).
    pub async fn deliveries(&self, id: &str, query: &str) -> Result<DeliveryList, ClientError> {
        self.get(&format!("/webhooks/{id}/deliveries?{query}")).await
    }

    /// Asks for a notification to be delivered again, under the same id.
    pub async fn redeliver(&self, id: &str) -> Result<DeliveryView, ClientError> {
        self.json(self.request(Method::POST, &format!("/deliveries/{id}/redeliver"))).await
    }
}
