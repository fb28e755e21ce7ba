//! Parameters in paths and in query strings, each checked once and named when it is wrong.

use std::{collections::BTreeMap, str::FromStr};

use axum::{
    extract::{FromRequestParts, Query, RawPathParams},
    http::request::Parts,
};
use palisade_core::Invalid;

use crate::problems::Rejection;

/// The named parts of a path.
#[derive(Debug)]
pub(crate) struct Segments(Vec<(String, String)>);

impl Segments {
    /// The part of that name.
    pub(crate) fn get<T: FromStr<Err = Invalid>>(&self, name: &str) -> Result<T, Invalid> {
        let text = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        text.expect("the route has a part of this name").parse()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Segments {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Rejection> {
        let not_text = || {
            let allowed = "must be UTF-8 once its percent-encoding is taken away";
            Rejection::from(Invalid::new("path", parts.uri.path(), allowed))
        };
        let rejected = not_text();
        let raw = RawPathParams::from_request_parts(parts, state).await.map_err(|_| rejected)?;
        Ok(Self(raw.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
    }
}

/// Any text.
#[derive(Debug, Default)]
pub(crate) struct Text(pub(crate) String);

impl FromStr for Text {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Ok(Self(text.to_owned()))
    }
}

/// A query string's parameters. Those that nobody takes are refused.
#[derive(Debug)]
pub(crate) struct Params(BTreeMap<String, String>);

impl Params {
    /// A parameter whose type says itself what is allowed.
    pub(crate) fn take<T: FromStr<Err = Invalid>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, Invalid> {
        let Some(text) = self.0.remove(name) else { return Ok(None) };
        let named = |invalid: Invalid| Invalid { field: name.to_owned(), ..invalid };
        text.parse().map(Some).map_err(named)
    }

    /// A whole number within a range.
    pub(crate) fn take_number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Invalid> {
        let Some(text) = self.0.remove(name) else { return Ok(None) };
        // Digits alone: `parse` would take a sign as well.
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| plain && range.contains(number));
        let (low, high) = range.into_inner();
        number.map(Some).ok_or_else(|| {
            Invalid::new(name, &text, format!("must be a whole number from {low} to {high}"))
        })
    }

    /// Whether a parameter is this very word; otherwise it is left to be taken.
    pub(crate) fn take_word(&mut self, name: &str, word: &str) -> bool {
        let is_it = self.0.get(name).is_some_and(|value| value == word);
        if is_it {
            self.0.remove(name);
        }
        is_it
    }

    /// A parameter that is `true` or `false`.
    pub(crate) fn take_flag(&mut self, name: &str) -> Result<Option<bool>, Invalid> {
        let Some(text) = self.0.remove(name) else { return Ok(None) };
        let wrong = |_| Invalid::new(name, &text, "must be true or false");
        text.parse().map(Some).map_err(wrong)
    }

    /// Refuses what is left.
    pub(crate) fn finish(self, known: &str) -> Result<(), Invalid> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, value)) => {
                let allowed = if known.is_empty() {
                    "this route takes no query parameters".to_owned()
                } else {
                    format!("this route's query parameters are {known}")
                };
                Err(Invalid::new(name, &value, allowed))
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Rejection> {
        let query = parts.uri.query().unwrap_or_default();
        let unreadable = || Invalid::new("query", query, "must be name=value pairs joined by &");
        let Query(pairs) =
            Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map_err(|_| unreadable())?;
        let mut params = BTreeMap::new();
        for (name, value) in pairs {
            if params.contains_key(&name) {
                return Err(Invalid::new(name, &value, "must be given once").into());
            }
            params.insert(name, value);
        }
        Ok(Self(params))
    }
}
