//! Azure, by Azurite.

use super::{
    OfServer, fresh_prefix, large_blobs_go_in_parts,
    servers::{AZURITE_ACCOUNT, AZURITE_KEY, ObjectServer},
    signed_addresses_bring_the_bytes,
};
use crate::{Location, bucket::Bucket};

struct Azure {
    server: ObjectServer,
}

impl Azure {
    fn start() -> Option<Self> {
        ObjectServer::azurite().map(|server| Self { server })
    }

    async fn bucket(&self) -> Bucket {
        let endpoint = format!("{}/{AZURITE_ACCOUNT}", self.server.url());
        let prefix = fresh_prefix();
        let text = format!("az://tests/{prefix}?azure_storage_endpoint={endpoint}&allow_http=true");
        let location: Location = text.parse().expect("an address");
        let environment = [
            ("AZURE_STORAGE_ACCOUNT_NAME".to_owned(), AZURITE_ACCOUNT.to_owned()),
            ("AZURE_STORAGE_ACCOUNT_KEY".to_owned(), AZURITE_KEY.to_owned()),
        ];
        location.open(&environment).await.expect("a client").bucket.expect("a container")
    }

    async fn bench(&self) -> OfServer {
        OfServer::new(self.bucket().await)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn azure_passes_the_suite_of_blobs() {
    let Some(azure) = Azure::start() else { return };
    crate::blob_conformance!(all => azure.bench());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn azure_passes_the_suite_of_registers() {
    let Some(azure) = Azure::start() else { return };
    crate::register_conformance!(all => async { azure.bench().await.cells() });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn azure_takes_large_blobs_signs_addresses_and_is_proven() {
    let Some(azure) = Azure::start() else { return };
    azure.bucket().await.prove(1).await.expect("it does what it says");
    large_blobs_go_in_parts(&azure.bench().await).await;
    // Its signatures have no place for how a blob is shown.
    signed_addresses_bring_the_bytes(&azure.bench().await, false).await;
}
