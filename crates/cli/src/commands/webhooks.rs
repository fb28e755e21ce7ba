//! `webhooks`: who is told when jobs end, and what became of what was told.

use std::process::ExitCode;

use clap::Subcommand;
use palisade_api::{
    Client,
    wire::{DeliveryView, RotateRequest, WebhookRequest, WebhookView},
};
use palisade_core::outbox::{EndpointId, EventId, EventType, Standing};

use crate::{args::Common, output, span::Span};

use super::client;

/// What to do.
#[derive(Debug, clap::Args)]
pub(crate) struct WebhooksArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Add a webhook, and print its secret: it is shown this once.
    Add(AddArgs),
    /// List the webhooks.
    Ls,
    /// Remove a webhook, and what was still to be told to it.
    Rm {
        /// The webhook.
        webhook: EndpointId,
    },
    /// Give a webhook another secret, and print it: it is shown this once.
    Rotate(RotateArgs),
    /// Show what is told to a webhook, newest first.
    Deliveries(DeliveriesArgs),
    /// Deliver a notification again, under the same id.
    Redeliver {
        /// The notification, as `deliveries` shows it.
        delivery: EventId,
    },
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Where to: an http:// or https:// address.
    url: String,
    /// What of, separated by commas; if not given, all but job.progress.
    #[arg(long, value_delimiter = ',', value_name = "EVENTS")]
    events: Vec<EventType>,
    /// Whose jobs; the default tenant's if not given.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

#[derive(Debug, clap::Args)]
struct RotateArgs {
    /// The webhook.
    webhook: EndpointId,
    /// How long the old secret signs beside the new one: 0s, 1h; a day if not given.
    #[arg(long, value_name = "SPAN")]
    keep: Option<Span>,
}

#[derive(Debug, clap::Args)]
struct DeliveriesArgs {
    /// The webhook.
    webhook: EndpointId,
    /// Only pending, leased, delivered or dead ones.
    #[arg(long, value_name = "STATE", value_parser = Standing::WORDS)]
    state: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
    /// Where the page begins: the last page's `next_cursor`.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<EventId>,
}

pub(crate) async fn run(args: WebhooksArgs, common: Common) -> anyhow::Result<ExitCode> {
    let (client, json) = (client(&common)?, common.json);
    match args.verb {
        Verb::Add(args) => add(&client, args, json).await?,
        Verb::Ls => list(&client, json).await?,
        Verb::Rm { webhook } => {
            client.remove_webhook(&webhook.to_string()).await?;
            output::note(&format!("{webhook}: removed"));
        }
        Verb::Rotate(args) => rotate(&client, &args, json).await?,
        Verb::Deliveries(args) => deliveries(&client, args, json).await?,
        Verb::Redeliver { delivery } => {
            let delivery = client.redeliver(&delivery.to_string()).await?;
            if json {
                output::json(&delivery);
            } else {
                output::line(&format!("{}: {}", delivery.id, delivery.state));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn add(client: &Client, args: AddArgs, json: bool) -> anyhow::Result<()> {
    let events = args.events.iter().map(ToString::to_string).collect();
    let wish = WebhookRequest { url: args.url, events, tenant: args.tenant };
    show_secret(&client.add_webhook(&wish).await?, json);
    Ok(())
}

async fn rotate(client: &Client, args: &RotateArgs, json: bool) -> anyhow::Result<()> {
    let keep_ms = args.keep.map(Span::ms);
    let (id, asked) = (args.webhook.to_string(), RotateRequest { keep_ms });
    show_secret(&client.rotate_webhook(&id, &asked).await?, json);
    Ok(())
}

fn show_secret(webhook: &WebhookView, json: bool) {
    if json {
        output::json(webhook);
        return;
    }
    output::line(&webhook.id);
    output::line(webhook.secret.as_deref().unwrap_or_default());
    output::note("keep the secret: it is not shown again");
}

async fn list(client: &Client, json: bool) -> anyhow::Result<()> {
    let list = client.webhooks().await?;
    if json {
        output::json(&list);
        return Ok(());
    }
    let mut rows = output::table(["webhook", "tenant", "events", "url"]);
    for webhook in list.webhooks {
        rows.add_row([webhook.id, webhook.tenant, webhook.events.join(" "), webhook.url]);
    }
    output::line(&rows.to_string());
    Ok(())
}

async fn deliveries(client: &Client, args: DeliveriesArgs, json: bool) -> anyhow::Result<()> {
    let mut query = format!("limit={}", args.limit);
    query += &args.state.map(|state| format!("&state={state}")).unwrap_or_default();
    query += &args.cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
    let list = client.deliveries(&args.webhook.to_string(), &query).await?;
    if json {
        output::json(&list);
        return Ok(());
    }
    let header =
        ["delivery", "event", "job", "submission", "token", "seq", "state", "tries", "last"];
    let mut rows = output::table(header);
    for delivery in &list.deliveries {
        rows.add_row(row(delivery));
    }
    output::line(&rows.to_string());
    if let Some(cursor) = list.next_cursor {
        output::note(&format!("more: --cursor {cursor}"));
    }
    Ok(())
}

fn row(delivery: &DeliveryView) -> [String; 9] {
    let last = delivery.last_error.as_deref().unwrap_or_default();
    [
        delivery.id.clone(),
        delivery.event.clone(),
        delivery.job.clone(),
        delivery.submission.to_string(),
        delivery.token.map(|token| token.to_string()).unwrap_or_default(),
        delivery.seq.to_string(),
        delivery.state.clone(),
        delivery.tries.to_string(),
        last.escape_debug().to_string(),
    ]
}
