//! Columns to values and back. What does not read as what was written is a corrupt record.

use std::{fmt::Display, str::FromStr};

use palisade_core::{Digest, JobId, LeaseId, Number, Timestamp};
use rusqlite::{Connection, ErrorCode, Row, ToSql, types::FromSql};
use serde::{Serialize, de::DeserializeOwned};

use crate::fault::Fault;

/// Whole numbers are checked to be below 2^53 before an operation begins, so this never saturates
/// what was given; a deadline beyond all time stays beyond all time.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A number as its column holds it.
pub(super) fn number(number: Number) -> i64 {
    int(number.get())
}

/// An instant as its column holds it.
pub(super) fn instant(at: Timestamp) -> i64 {
    int(at.0)
}

/// A value as JSON.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("records always serialise")
}

/// What SQLite said, told apart by what can be done.
pub(super) fn fault(error: rusqlite::Error) -> Fault {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Fault::Full(error.into()),
        _ => Fault::Engine(error.into()),
    }
}

/// Runs an update of one row whose condition guards an invariant. No row: the invariant would
/// break, or the row is not there.
pub(super) fn update_one(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    record: impl Display,
) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    match statement.execute(values).map_err(fault)? {
        1 => Ok(()),
        _ => Err(Fault::Corrupt {
            record: record.to_string(),
            what: "it is not there as it was read, or the change would break an invariant"
                .to_owned(),
        }),
    }
}

/// A row being decoded, and what to call it when it is corrupt.
pub(super) struct Columns<'row> {
    row: &'row Row<'row>,
    table: &'static str,
}

impl<'row> Columns<'row> {
    pub(super) fn new(table: &'static str, row: &'row Row<'row>) -> Self {
        Self { row, table }
    }

    pub(super) fn get<T: FromSql>(&self, index: usize) -> Result<T, Fault> {
        self.row.get(index).map_err(fault)
    }

    pub(super) fn text(&self, index: usize) -> Result<&'row str, Fault> {
        self.row.get_ref(index).map_err(fault)?.as_str().map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn optional_text(&self, index: usize) -> Result<Option<&'row str>, Fault> {
        let column = self.row.get_ref(index).map_err(fault)?;
        column.as_str_or_null().map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn blob<const LENGTH: usize>(&self, index: usize) -> Result<[u8; LENGTH], Fault> {
        let column = self.row.get_ref(index).map_err(fault)?;
        let bytes = column.as_blob().map_err(|error| self.corrupt(index, error))?;
        bytes.try_into().map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn digest(&self, index: usize) -> Result<Digest, Fault> {
        self.blob(index).map(Digest::from_bytes)
    }

    pub(super) fn lease_id(&self, index: usize) -> Result<LeaseId, Fault> {
        self.blob(index).map(|bytes| LeaseId(u128::from_be_bytes(bytes)))
    }

    pub(super) fn unsigned(&self, index: usize) -> Result<u64, Fault> {
        let value: i64 = self.get(index)?;
        u64::try_from(value).map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn small(&self, index: usize) -> Result<u32, Fault> {
        let value: i64 = self.get(index)?;
        u32::try_from(value).map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn number(&self, index: usize) -> Result<Number, Fault> {
        Number::new(self.unsigned(index)?).map_err(|error| self.corrupt(index, error))
    }

    pub(super) fn job(&self, index: usize) -> Result<JobId, Fault> {
        self.number(index).map(JobId)
    }

    pub(super) fn instant(&self, index: usize) -> Result<Timestamp, Fault> {
        self.unsigned(index).map(Timestamp)
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
        let column = self.row.as_ref().column_name(index).unwrap_or("?").to_owned();
        let key: Option<i64> = self.row.get(0).ok();
        let record = match key {
            Some(key) => format!("{} {key}", self.table),
            None => self.table.to_owned(),
        };
        Fault::Corrupt { record, what: format!("{column}: {what}") }
    }
}
