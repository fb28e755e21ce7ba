//! Columns to values and back. What does not read as what was written is a corrupt record.

use std::{fmt::Display, str::FromStr};

use palisade_core::{Digest, JobId, LeaseId, Number, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use tokio_postgres::{Row, error::SqlState, types::FromSql};

use crate::fault::Fault;

/// Whole numbers are checked to be below 2^53 before an operation begins, so this never saturates
/// what was given; a deadline beyond all time stays beyond all time.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn number(number: Number) -> i64 {
    int(number.get())
}

pub(super) fn instant(at: Timestamp) -> i64 {
    int(at.0)
}

pub(super) fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A value as JSON. Text, not jsonb: nothing in it is searched for, and text keeps every character
/// that JSON can escape.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("records always serialise")
}

/// What the database said, told apart by what can be done.
pub(super) fn fault(error: tokio_postgres::Error) -> Fault {
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => Fault::Full(error.into()),
        Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            Fault::ReadOnly(error.as_db_error().map_or_else(String::new, |it| it.message().into()))
        }
        _ => Fault::Engine(error.into()),
    }
}

/// A row being decoded, and what to call it when it is corrupt.
#[derive(Clone, Copy)]
pub(super) struct Columns<'row> {
    row: &'row Row,
    table: &'static str,
}

impl<'row> Columns<'row> {
    pub(super) fn new(table: &'static str, row: &'row Row) -> Self {
        Self { row, table }
    }

    pub(super) fn get<T: FromSql<'row>>(&self, index: usize) -> Result<T, Fault> {
        self.row.try_get(index).map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn text(&self, index: usize) -> Result<&'row str, Fault> {
        self.get(index)
    }

    fn bytes<const LENGTH: usize>(&self, index: usize) -> Result<[u8; LENGTH], Fault> {
        let bytes: &[u8] = self.get(index)?;
        bytes.try_into().map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn digest(&self, index: usize) -> Result<Digest, Fault> {
        self.bytes(index).map(Digest::from_bytes)
    }

    pub(super) fn lease_id(&self, index: usize) -> Result<LeaseId, Fault> {
        self.bytes(index).map(|bytes| LeaseId(u128::from_be_bytes(bytes)))
    }

    pub(super) fn unsigned(&self, index: usize) -> Result<u64, Fault> {
        let value: i64 = self.get(index)?;
        u64::try_from(value).map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn optional_unsigned(&self, index: usize) -> Result<Option<u64>, Fault> {
        let value: Option<i64> = self.get(index)?;
        value.map(|_| self.unsigned(index)).transpose()
    }

    pub(super) fn number(&self, index: usize) -> Result<Number, Fault> {
        Number::new(self.unsigned(index)?).map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn job(&self, index: usize) -> Result<JobId, Fault> {
        self.number(index).map(JobId)
    }

    pub(super) fn instant(&self, index: usize) -> Result<Timestamp, Fault> {
        // Beyond all time here is beyond all time there.
        let at = self.unsigned(index)?;
        Ok(Timestamp(if at == int(u64::MAX).unsigned_abs() { u64::MAX } else { at }))
    }

    pub(super) fn optional_instant(&self, index: usize) -> Result<Option<Timestamp>, Fault> {
        let value: Option<i64> = self.get(index)?;
        value.map(|_| self.instant(index)).transpose()
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&self, index: usize) -> Result<T, Fault> {
        self.text(index)?.parse().map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn json<T: DeserializeOwned>(&self, index: usize) -> Result<T, Fault> {
        serde_json::from_str(self.text(index)?).map_err(|error| self.corrupt(index, error))
    }

    /// A word of an enumeration that serialises as a word.
    pub(super) fn word<T: DeserializeOwned>(&self, index: usize) -> Result<T, Fault> {
        use serde::de::{IntoDeserializer, value::Error};
        let word: serde::de::value::StrDeserializer<'_, Error> =
            self.text(index)?.into_deserializer();
        T::deserialize(word).map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn corrupt(&self, index: usize, what: impl Display) -> Fault {
        let column = self.row.columns().get(index).map_or("?", |column| column.name());
        let record = match self.row.try_get::<_, i64>(0) {
            Ok(key) => format!("{} {key}", self.table),
            Err(_) => self.table.to_owned(),
        };
        Fault::Corrupt { record, what: format!("{column}: {what}") }
    }
}
