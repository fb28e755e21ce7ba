//! Unfinished multipart uploads of S3: found and aborted when they are old.
//!
//! A worker that dies in the middle of a large upload leaves parts that cost money and that no
//! listing of objects shows. `object_store` cannot list them, but it signs any request; so this
//! one request is made here. (Azure forgets uncommitted blocks after a week by itself; for GCS an
//! operator sets a lifecycle rule.)

use std::{error::Error, sync::Arc, time::Duration};

use object_store::{
    aws::AmazonS3,
    multipart::MultipartStore as _,
    path::Path,
    signer::{Method, SignedUrlOptions, Signer as _},
};
use palisade_core::Timestamp;
use serde::Deserialize;

/// How long a signed request for a list is good.
const SIGNED_FOR: Duration = Duration::from_mins(5);
/// How long a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

type Failure = Box<dyn Error + Send + Sync>;

/// Finds and aborts unfinished uploads.
#[derive(Debug)]
pub(crate) struct Uploads {
    s3: Arc<AmazonS3>,
}

/// A page of the list, as S3 spells it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Page {
    is_truncated: bool,
    next_key_marker: String,
    next_upload_id_marker: String,
    #[serde(rename = "Upload")]
    uploads: Vec<Unfinished>,
}

/// One unfinished upload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Unfinished {
    key: String,
    upload_id: String,
    initiated: String,
}

impl Unfinished {
    /// When it began. None: it says so in a way that is not known, and is left alone.
    fn begun_at(&self) -> Option<Timestamp> {
        let at = chrono::DateTime::parse_from_rfc3339(&self.initiated).ok()?;
        u64::try_from(at.timestamp_millis()).ok().map(Timestamp)
    }
}

impl Uploads {
    pub(crate) fn new(s3: Arc<AmazonS3>) -> Self {
        Self { s3 }
    }

    /// Aborts the uploads below `prefix` that began before `before`; answers how many.
    pub(crate) async fn abort_older(
        &self,
        prefix: &Path,
        before: Timestamp,
    ) -> Result<u64, Failure> {
        let mut aborted = 0;
        for upload in self.list(prefix).await? {
            if upload.begun_at().is_none_or(|begun_at| begun_at >= before) {
                continue;
            }
            let path = Path::parse(&upload.key)?;
            match self.s3.abort_multipart(&path, &upload.upload_id).await {
                Ok(()) => aborted += 1,
                // Completed or aborted since the list was made.
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(aborted)
    }

    /// All unfinished uploads below `prefix`, whole parts of it.
    pub(crate) async fn list(&self, prefix: &Path) -> Result<Vec<Unfinished>, Failure> {
        let http = reqwest::Client::builder().timeout(LIST_TIMEOUT).build()?;
        let below = format!("{prefix}/");
        let (mut markers, mut found) = ((String::new(), String::new()), Vec::new());
        loop {
            let page = self.page(&http, &below, &markers).await?;
            found.extend(page.uploads.into_iter().filter(|one| one.key.starts_with(&below)));
            if !page.is_truncated {
                return Ok(found);
            }
            let next = (page.next_key_marker, page.next_upload_id_marker);
            if next == markers {
                return Err("the list of uploads does not go on, and says that it does".into());
            }
            markers = next;
        }
    }

    async fn page(
        &self,
        http: &reqwest::Client,
        below: &str,
        markers: &(String, String),
    ) -> Result<Page, Failure> {
        let mut query = vec![("uploads", ""), ("prefix", below)];
        if !markers.0.is_empty() {
            query.extend([("key-marker", markers.0.as_str()), ("upload-id-marker", &markers.1)]);
        }
        let options = SignedUrlOptions::new().with_query(query);
        let bucket = Path::default();
        let url = self.s3.signed_url_opts(Method::GET, &bucket, SIGNED_FOR, &options).await?;
        let answer = http.get(url).send().await.map_err(reqwest::Error::without_url)?;
        let answer = answer.error_for_status().map_err(reqwest::Error::without_url)?;
        let text = answer.text().await.map_err(reqwest::Error::without_url)?;
        Ok(quick_xml::de::from_str(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn a_page_of_s3_is_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
              <Bucket>films</Bucket><KeyMarker></KeyMarker><UploadIdMarker></UploadIdMarker>
              <NextKeyMarker>p/blobs/b/2</NextKeyMarker>
              <NextUploadIdMarker>second</NextUploadIdMarker>
              <MaxUploads>2</MaxUploads><IsTruncated>true</IsTruncated>
              <Upload><Key>p/blobs/a/1</Key><UploadId>first</UploadId>
                <Initiator><ID>x</ID></Initiator><StorageClass>STANDARD</StorageClass>
                <Initiated>2024-02-29T12:00:00.500Z</Initiated></Upload>
              <Upload><Key>p/blobs/b/2</Key><UploadId>second</UploadId>
                <Initiated>yesterday</Initiated></Upload>
            </ListMultipartUploadsResult>"#;
        let page: Page = quick_xml::de::from_str(text).expect("it is read");
        assert!(page.is_truncated);
        assert_eq!(
            (page.next_key_marker, page.next_upload_id_marker.as_str()),
            ("p/blobs/b/2".to_owned(), "second")
        );
        let begun: Vec<_> = page.uploads.iter().map(|one| one.begun_at().map(|at| at.0)).collect();
        assert_eq!(begun, [Some(1_709_208_000_500), None], "an unknown time is no time");
        assert_eq!(page.uploads[0].key, "p/blobs/a/1");
    }

    #[test]
    fn a_page_without_uploads_is_read() {
        let text = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>\
                    </ListMultipartUploadsResult>";
        let page: Page = quick_xml::de::from_str(text).expect("it is read");
        assert!(!page.is_truncated && page.uploads.is_empty());
    }
}
