//! HTTP as bytes: what no well-behaved client would send.

use std::collections::BTreeMap;

use palisade_api::Problem;
use palisade_server::Server;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A request, as it goes over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        Self { method, path, headers: Vec::new(), body: Vec::new() }
    }

    /// A POST of JSON.
    pub(crate) fn json(path: &str, body: &str) -> Self {
        Self::new("POST", path).header("content-type", "application/json").body(body.as_bytes())
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// The head, and the body after it.
    pub(crate) fn bytes(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let given = |name: &str| self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        if !given("host") {
            head += &format!("host: {host}\r\n");
        }
        if !given("content-length") && !given("transfer-encoding") && self.method != "GET" {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// An answer, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The problem that it is; every refusal must be one.
    pub(crate) fn problem(&self) -> Problem {
        let media_type = self.headers.get("content-type").map(String::as_str);
        assert_eq!(media_type, Some("application/problem+json"), "{self:?}");
        let problem: Problem =
            serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"));
        assert_eq!(problem.status, self.status);
        assert!(!problem.title.is_empty() && !problem.detail.is_empty(), "{problem:?}");
        problem
    }
}

/// Opens a connection.
pub(crate) async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.address()).await.unwrap()
}

/// Sends a request on a connection of its own and reads the answer to its end.
pub(crate) async fn ask(server: &Server, request: Request) -> Answer {
    let mut stream = connect(server).await;
    let request = request.header("connection", "close");
    stream.write_all(&request.bytes(&server.address().to_string())).await.unwrap();
    read_answer(&mut stream, request.method == "HEAD").await
}

/// Reads one answer.
pub(crate) async fn read_answer(stream: &mut TcpStream, head_only: bool) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(answer) = parse(&bytes, head_only) {
            return answer;
        }
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the connection ended early: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..read]);
    }
}

fn parse(bytes: &[u8], head_only: bool) -> Option<Answer> {
    let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = match headers.get("content-length") {
        Some(_) if head_only || status == 304 => 0,
        Some(length) => length.parse().unwrap(),
        None => 0,
    };
    let body = bytes[head_end + 4..].to_vec();
    (body.len() >= length).then_some(Answer { status, headers, body })
}
